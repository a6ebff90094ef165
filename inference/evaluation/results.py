"""Read the results of an evaluation: figures, curves, images worst first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from aiplatform.lib.files import OutsideRoot, open_beneath
from aiplatform.lib.numbers import finite
from inference.evaluation import script_metrics as figures
from inference.evaluation.evaluator.preview import NAME as PREVIEW
from inference.evaluation.jobs.outputs import read_json
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS
from workers.core.runs import RunDir

MAX_PREVIEW_BYTES = 4 << 20
FILES = ("evaluation.json", "images.jsonl", "predictions.json", "predictions.jsonl", "metrics.json")


def folder(evaluation: Evaluation) -> Path | None:
    """Return its outputs folder; None before it ended."""
    if not evaluation.published_attempt:
        return None
    return RunDir.for_attempt(evaluation.job_id, evaluation.published_attempt).outputs


def load(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the evaluation as its program wrote it (see inference.evaluation.evaluator); None if there is none.

    Of a custom script: `scripted`, its metrics by name as `summary`, and `figures` as its row keeps them.
    """
    root = folder(evaluation)
    if root is None:
        return None
    if evaluation.is_scripted:  # other files there belong to the script
        rows = evaluation.script.figures
        return {"scripted": True, "summary": figures.flat(rows), "figures": rows}
    try:
        return _parse(str(root), (root / "evaluation.json").stat().st_mtime_ns)
    except (OSError, ValueError, OutsideRoot):
        return None


@lru_cache(maxsize=32)
def _parse(root: str, changed: int) -> dict[str, Any]:
    with os.fdopen(open_beneath(Path(root), "evaluation.json"), "rb") as file:
        content: dict[str, Any] = json.load(file)
    return content


def preview(evaluation: Evaluation) -> dict[str, Any]:
    """Return results of the newest images of an evaluation that runs, see evaluator/preview.py; {} without any."""
    if evaluation.job.is_final:
        return {}
    outputs = RunDir.for_attempt(evaluation.job_id, evaluation.job.attempt_number).outputs
    return dict(read_json(outputs, PREVIEW, max_bytes=MAX_PREVIEW_BYTES))


def check_predictions(evaluation: Evaluation) -> None:
    """Raise an error if a custom script gave metrics only, and predictions of single images are required.

    Raises:
        Invalid.
    """
    if evaluation.is_scripted:
        message = _(
            "%(name)s was evaluated by a custom script, which reports only metrics. Evaluate without a script "
            "to see images, errors, slices and confidences."
        )
        raise Invalid(message % {"name": evaluation}, field="evaluation")


def images(
    evaluation: Evaluation, *, cell: str = "", mistake: str = "", begin: int = 0, count: int = 24
) -> tuple[list[Any], bool]:
    """Return some of the evaluated images, worst first, and whether more follow.

    Args:
        cell: "t,a" (places in the confusion matrix) leaves only images that have this pair; "t," those that show t,
            whatever was answered, and ",a" those where a was answered.
        mistake: leaves only images with a mistake of this kind, see task_kinds/mistaken.py.
    """
    images: list[Any] = []
    chosen = _images(evaluation, cell)
    if mistake:
        chosen = (image for image in chosen if any(row[0] == mistake for row in image.get("mistakes", ())))
    for position, image in enumerate(chosen):
        if position >= begin + count:
            return images, True
        if position >= begin:
            images.append(image)
    return images, False


def manual_names(task: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return metrics by the names of the manual, as far as it names them."""
    named = TASKS[task].pages.figures if task in TASKS else ()
    values = {figure.manual: finite(metrics.get(figure.key)) for figure in named if figure.manual}
    return {name: value for name, value in values.items() if value is not None}


def stamp(evaluation: Evaluation) -> tuple[str, int]:
    """Return path and modification time of its entries of images: a cache key."""
    root = folder(evaluation)
    try:
        return str(root), (root / "images.jsonl").stat().st_mtime_ns if root else 0
    except OSError:
        return str(root), 0


def every_image(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """The entries of all images, worst first; none before it ended."""
    yield from _images(evaluation, "")


def _images(evaluation: Evaluation, cell: str) -> Iterator[Any]:
    root = folder(evaluation)
    if root is None or evaluation.is_scripted:
        return
    try:
        descriptor = open_beneath(root, "images.jsonl")
    except (OSError, OutsideRoot):
        return
    truth, _, answer = cell.partition(",")
    marker = ('"' * bool(truth) + cell + '"' * bool(answer)).encode()
    with os.fdopen(descriptor, "rb") as file:
        for line in file:
            if cell and marker not in line:
                continue
            image = json.loads(line)
            pairs = (text.split(",") for text in image["cells"])
            if not cell or any(truth in (t, "") and answer in (a, "") for t, a in pairs):
                yield image


def downloads(evaluation: Evaluation) -> list[tuple[str, Path, str]]:
    """Return the files to download as (name, root, path below it)."""
    root = folder(evaluation)
    if root is None:
        return []
    names = (figures.FILE,) if evaluation.is_scripted else FILES
    return [(name, root, name) for name in names if (root / name).is_file()]
