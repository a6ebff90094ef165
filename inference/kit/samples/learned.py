"""Which images a training learned from: the rule by which presets divide a dataset version.

The same as `training.presets.data.split`, which stays where a run finds it; a test holds the two together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from training.presets import groups

HELD_OUT = 10  # per cent, where no split is meant for scoring


def key(row: Mapping[str, Any]) -> str:
    """What an image of the manifest is known by in other versions: its content, else its path."""
    return str(row.get("sha256") or row["path"])


def keys(root: Path, *, train: str, evaluate: str, folds: int = 0, fold: int = 1, group_by: str = "") -> set[str]:
    """Keys of the images of a version that a preset learned from.

    Args:
        train: names of splits, separated by commas, as the parameter `train_splits`.
        evaluate: the split it scored on, as the parameter `eval_split`.
        folds, fold: of a cross-validation, as the parameters; it scored on that part and learned from the others.
        group_by: what kept images together, as the parameter.
    """
    with (root / "manifest.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    usable = _usable(root, rows)
    names = {name.strip() for name in train.split(",") if name.strip()}
    learn = [row for row in usable if (row.get("split") or "") in names]
    if not learn and not any(row.get("split") for row in usable):
        learn = usable
    if folds:
        dealt = zip(learn, _grouped(root, learn, folds, group_by), strict=True) if group_by else _dealt(learn, folds)
        return {key(row) for row, number in dealt if number != fold}
    scored = any(
        name and name not in names and any(row.get("split") == name for row in usable) for name in (evaluate, "test")
    )
    if scored:  # nothing was held out: groups need not be found in every path
        return {key(row) for row in learn}
    group = groups.names([row["path"] for row in learn], group_by)
    held = _held_out(group)
    return {key(row) for row, own in zip(learn, group, strict=True) if own not in held}


def _usable(root: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that carry an annotation: those with a label, else those that the COCO file lists."""
    if labelled := [row for row in rows if row.get("label") is not None]:
        return labelled
    try:
        listed = {image["file_name"] for image in json.loads((root / "annotations.json").read_text())["images"]}
    except OSError:
        return []
    return [row for row in rows if row["path"] in listed]


def _place(row: Mapping[str, Any]) -> tuple[int, str]:
    """The order in which images are dealt out to the parts of a cross-validation: by class, then by path."""
    label = row.get("label")
    return -1 if label is None else int(label), hashlib.sha256(str(row["path"]).encode()).hexdigest()


def _dealt(rows: list[dict[str, Any]], folds: int) -> Iterable[tuple[dict[str, Any], int]]:
    return ((row, number % folds + 1) for number, row in enumerate(sorted(rows, key=_place)))


def _grouped(root: Path, rows: list[dict[str, Any]], folds: int, group_by: str) -> list[int]:
    """Return the part of each row with groups kept together; classes are those of the images, else of their objects."""
    classes: dict[str, set[int]] = {row["path"]: {int(row["label"])} for row in rows if row.get("label") is not None}
    if not classes:
        class_ids = {int(entry["id"]) for entry in json.loads((root / "dataset.json").read_text()).get("classes") or []}
        coco = json.loads((root / "annotations.json").read_text())
        path_of = {image["id"]: image["file_name"] for image in coco["images"]}
        for shape in coco["annotations"]:
            if shape["category_id"] in class_ids:
                classes.setdefault(path_of.get(shape["image_id"], ""), set()).add(shape["category_id"])
    paths = [row["path"] for row in rows]
    own = groups.names(paths, group_by)
    return groups.parts([(name, classes.get(path, set())) for name, path in zip(own, paths, strict=True)], folds)


def _held_out(names: Iterable[str]) -> set[str]:
    """A tenth, chosen by path or group and therefore the same every time; at least one of several."""
    bucket = {name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 100 for name in names}
    held = {name for name, number in bucket.items() if number < HELD_OUT}
    if not held and len(bucket) > 1:
        held = {min(bucket, key=bucket.__getitem__)}
    return held
