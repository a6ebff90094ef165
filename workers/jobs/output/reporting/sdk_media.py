"""What the SDK's `image`, `audio`, `table` and so on wrote: a JSON line each, files beside. Pure.

A file is there before its line is. `training/programs/sdk/media.py` writes them; the limits stand there too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from aiplatform.lib.numbers import finite
from workers.jobs.output.reporting import histograms, lines, vectors
from workers.jobs.output.reporting.harvest import Harvest, Shown, name_of, step_of
from workers.jobs.output.reporting.watched import Watched

FOLDER, NAME = "aip-media", "media.jsonl"
MAX_BYTES = 16 * 1024 * 1024
MAX_TEXT_BYTES = 16 * 1024
MAX_ROWS, MAX_COLUMNS, LONGEST_CELL = 1000, 50, 300
Beside = Callable[[str, int], bytes]


def read(watched: Watched, harvest: Harvest, read_sibling: Beside) -> None:
    """Take in new lines.

    Args:
        beside: the first bytes of a file in the same folder, empty where there is none.
    """
    for line in lines.new(watched, harvest):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        step = step_of(row.get("step")) if isinstance(row, dict) else None
        if step is None:
            harvest.miss("record_broken")
            continue
        at = finite(row.get("time")) or watched.changed_at
        read_one = _KINDS.get(str(row.get("kind")))
        shown = read_one(row, name_of(str(row.get("name", ""))[:1000]), step, at, read_sibling) if read_one else None
        harvest.show(shown) if shown else harvest.miss("record_broken")


def _image(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    data = read_sibling(str(row.get("file", "")), MAX_BYTES)
    return Shown("image", name, step, at, {}, data) if data else None


def _histogram(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    low, high, counts = finite(row.get("low")), finite(row.get("high")), row.get("counts")
    if (
        low is None
        or high is None
        or not isinstance(counts, list)
        or any(finite(each) is None for each in counts[:5000])
    ):
        return None
    histogram = histograms.from_buckets(low, high, counts[:5000])
    return Shown("histogram", name, step, at, histogram) if histogram and low <= high else None


def _text(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    text = read_sibling(str(row.get("file", "")), 4 * MAX_TEXT_BYTES).decode("utf-8", "replace")
    return Shown("text", name, step, at, {"text": text[:MAX_TEXT_BYTES], "cut": len(text) > MAX_TEXT_BYTES})


def _table(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    try:
        table = json.loads(read_sibling(str(row.get("file", "")), MAX_BYTES))
    except (ValueError, RecursionError):
        return None
    columns, rows = (table.get("columns"), table.get("rows")) if isinstance(table, dict) else (None, None)
    if not isinstance(columns, list) or not isinstance(rows, list):
        return None
    cells = [[_cell(cell) for cell in each[:MAX_COLUMNS]] for each in rows[:MAX_ROWS] if isinstance(each, list)]
    facts = {"columns": min(len(columns), MAX_COLUMNS), "rows": len(rows), "shown": len(cells)}
    data = {"columns": [str(column)[:100] for column in columns[:MAX_COLUMNS]], "rows": cells}
    return Shown("table", name, step, at, facts, json.dumps(data, ensure_ascii=False).encode())


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return finite(value) if isinstance(value, int | float) else str(value)[:LONGEST_CELL]


def _vectors(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    data = read_sibling(str(row.get("file", "")), 4 * vectors.MAX_VECTORS * vectors.WIDEST)
    head, _, raw = data.partition(b"\n")
    try:
        header = json.loads(head)
        width, labels = int(header["width"]), list(header.get("labels") or [])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    count = len(raw) // (4 * width) if 0 < width <= vectors.WIDEST else 0
    if not count:
        return None
    rows = np.frombuffer(raw[: count * width * 4], "<f4").reshape(count, width)
    facts, content = vectors.flat(rows, [str(label) for label in labels])
    return Shown("vectors", name, step, at, facts, content)


def _file(row: dict[str, Any], name: str, step: int, at: float, read_sibling: Beside) -> Shown | None:
    """Return what is shown as it came, if its first bytes are those of its kind."""
    data = read_sibling(str(row.get("file", "")), MAX_BYTES + 1)
    kind = str(row["kind"])
    suffix = format_of(data)
    if len(data) > MAX_BYTES or suffix not in FORMATS[kind]:
        return None
    return Shown(kind, name, step, at, {"format": suffix}, data)


def format_of(data: bytes) -> str:
    """Return "wav", "mp4", … by the first bytes of a file; "" for another format."""
    if data[4:8] == b"ftyp":
        return "mp4"
    if data.startswith(b"RIFF"):
        return "wav" if data[8:12] == b"WAVE" else ""
    return next((suffix for magic, suffix in _MAGICS if data.startswith(magic)), "")


FORMATS = {"audio": {"wav", "mp3", "ogg", "flac"}, "video": {"mp4", "webm", "gif"}, "figure": {"html"}}
_MAGICS = (
    (b"ID3", "mp3"), (b"\xff\xfb", "mp3"), (b"\xff\xf3", "mp3"), (b"\xff\xf2", "mp3"), (b"OggS", "ogg"),
    (b"fLaC", "flac"), (b"GIF8", "gif"), (b"\x1aE\xdf\xa3", "webm"), (b"<html", "html"), (b"<!DOCTYPE html", "html"),
    (b"<!doctype html", "html"),
)  # fmt: skip
_KINDS = {
    "image": _image,
    "histogram": _histogram,
    "text": _text,
    "table": _table,
    "vectors": _vectors,
    **dict.fromkeys(FORMATS, _file),
}
