"""Read what a prediction left: its summary and its answers, also while it runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from inference.batch.models import Prediction
from inference.batch.predictor.chunks import FOLDER, PREVIEW, SIZE, name_of
from inference.evaluation.jobs.outputs import entries, read_json
from inference.registry.prediction_lines import Line, to_count, word
from workers.core.runs import RunDir

MAX_BYTES = 4 << 20  # of a summary
MAX_LINE_BYTES = 64 << 20  # of the answer to one picture
COUNTS = ("total", "done", "broken", "predictions", "batch")


def outputs(prediction: Prediction) -> Path:
    """The outputs of the attempt that runs, where it says something already; else of the one that was published."""
    job = prediction.job
    newest = RunDir.for_attempt(job.pk, job.attempt_number).outputs
    if prediction.published_attempt in (0, job.attempt_number) or (newest / "summary.json").is_file():
        return newest
    return RunDir.for_attempt(job.pk, prediction.published_attempt).outputs


def load(prediction: Prediction) -> dict[str, Any]:
    """The summary as its program wrote it, cut down to what is sound; {} where there is none yet."""
    return read(outputs(prediction))


def read(folder: Path) -> dict[str, Any]:
    """Read the summary in the outputs of an attempt."""
    document = read_json(folder, "summary.json", max_bytes=MAX_BYTES)
    if not document:
        return {}
    return {
        **{name: to_count(document.get(name)) for name in COUNTS},
        "images_per_s": finite(document.get("images_per_s")) or 0.0,
        "provider": word(document.get("provider"), 60),
        "classes": [
            {"name": word(row.get("name"), 200), "count": to_count(row.get("count"))}
            for row in entries(document.get("classes"))
        ],
        "left_out": [
            {"path": word(row.get("path"), 1000), "code": word(row.get("code"), 30)}
            for row in entries(document.get("left_out"))
        ],
        "complete": document.get("complete") is True,
    }


def lines(prediction: Prediction, *, begin: int = 0) -> Iterator[Line]:
    """Yield the predictions in the order of the images from the index `begin` on; missing chunks are skipped."""
    folder, first = outputs(prediction), begin // SIZE
    end = -(-(prediction.total or to_count(read(folder).get("total"))) // SIZE)
    for number in range(first, end):
        yield from (line for line in chunk(folder, number) if line["n"] >= begin)


def chunk(folder: Path, number: int) -> Iterator[Line]:
    """Yield the valid predictions of a chunk; of the first one also those made so far, while it is not complete."""
    if number == 0 and not (folder / FOLDER / name_of(0)).exists():
        yield from _read(folder, PREVIEW, 0)
    else:
        yield from _read(folder, f"{FOLDER}/{name_of(number)}", number * SIZE, has_head=True)


def _read(folder: Path, name: str, begin: int, *, has_head: bool = False) -> Iterator[Line]:
    """Yield the valid predictions of a file, at most those of a chunk; none if it is missing."""
    try:
        descriptor = files.open_beneath(folder, name)
    except (OSError, files.OutsideRoot):
        return
    with os.fdopen(descriptor, "rb") as file:
        if has_head:
            file.readline(MAX_LINE_BYTES)
        for index in range(begin, begin + SIZE):
            text = file.readline(MAX_LINE_BYTES)
            if not text.endswith(b"\n"):
                return
            if line := _line(text, index):
                yield line


def _line(text: bytes, index: int) -> Line | None:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return None
    line: Line = {"n": index, "path": entry["path"][:1000]}
    if "error" in entry:
        return line | {"error": word(entry["error"], 30)}
    predictions, width, height = entry.get("predictions"), to_count(entry.get("width")), to_count(entry.get("height"))
    if not isinstance(predictions, list) or not width or not height:
        return None
    return line | {
        "width": width,
        "height": height,
        "predictions": [prediction for prediction in predictions if isinstance(prediction, dict)],
    }


def listed_path(prediction: Prediction, index: int) -> str:
    """Return the path at an index of the listed images; "" if there is none."""
    try:
        with prediction.listing.open(encoding="utf-8") as file:
            text = next(islice(file, index, None), "")
    except OSError:
        return ""
    return str(json.loads(text)) if text else ""
