"""Which images a training learned from: the rule by which presets divide a dataset version.

The same as `training.presets.data.split`, which stays where a run finds it; a test holds the two together.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HELD_OUT = 10  # per cent, where no split is meant for scoring


def key(row: Mapping[str, Any]) -> str:
    """What an image of the manifest is known by in other versions: its content, else its path."""
    return str(row.get("sha256") or row["path"])


def keys(root: Path, *, train: str, evaluate: str, folds: int = 0, fold: int = 1) -> set[str]:
    """Keys of the images of a version that a preset learned from.

    Args:
        train: names of splits, separated by commas, as the parameter `train_splits`.
        evaluate: the split it scored on, as the parameter `eval_split`.
        folds, fold: of a cross-validation, as the parameters; it scored on that part and learned from the others.
    """
    with (root / "manifest.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    usable = _usable(root, rows)
    names = {name.strip() for name in train.split(",") if name.strip()}
    learn = [row for row in usable if (row.get("split") or "") in names]
    if not learn and not any(row.get("split") for row in usable):
        learn = usable
    if folds:
        return {key(row) for number, row in enumerate(sorted(learn, key=_place)) if number % folds + 1 != fold}
    scored = any(
        name and name not in names and any(row.get("split") == name for row in usable) for name in (evaluate, "test")
    )
    held = set() if scored else _held_out(row["path"] for row in learn)
    return {key(row) for row in learn if row["path"] not in held}


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


def _held_out(paths: Iterable[str]) -> set[str]:
    """A tenth, chosen by path and therefore the same every time; at least one of several."""
    bucket = {path: int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big") % 100 for path in paths}
    held = {path for path, number in bucket.items() if number < HELD_OUT}
    if not held and len(bucket) > 1:
        held = {min(bucket, key=bucket.__getitem__)}
    return held
