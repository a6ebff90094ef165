"""Read what a watch left: its summary, also while it runs, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from inference.evaluation.jobs.outputs import entries, folder_of, read_json, table
from inference.registry.prediction_lines import word
from inference.video.models import VideoAnalysis

MAX_BYTES = 16 << 20
FILM, FIRST, LATEST, EVENTS, DETECTIONS = "film.webm", "first.jpg", "latest.jpg", "events.jsonl", "detections.jsonl"
SHOWN = (FILM, FIRST, LATEST)
STALLED_STATES = ("frozen", "black")
LINE_FIGURES, ZONE_FIGURES = ("in", "out"), ("inside", "entered", "left", "loitered")
outputs = folder_of


def load(analysis: VideoAnalysis) -> dict[str, Any]:
    """The summary as its program wrote it, cut down to what is sound; {} where there is none yet."""
    return read(outputs(analysis))


def opened(analysis: VideoAnalysis, name: str) -> int | None:
    """Descriptor of one of the files that it left; None where there is none."""
    try:
        return files.open_beneath(outputs(analysis), name)
    except (OSError, files.OutsideRoot):
        return None


def read(folder: Path) -> dict[str, Any]:
    """Read the summary in the outputs of an attempt."""
    content = read_json(folder, "summary.json", max_bytes=MAX_BYTES)
    if not content:
        return {}
    source = table(content.get("source"))
    names = {entry.get("id"): word(entry.get("name"), 100) for entry in entries(content.get("classes"))}
    return {
        "at": _number(content, "at"),
        "pictures": _count(content, "pictures"),
        "pictures_per_s": _number(content, "pictures_per_s"),
        "events": _count(content, "events"),
        "objects": [
            {"name": names.get(row.get("class_id")) or str(row.get("class_id")), "count": _count(row, "count")}
            for row in entries(content.get("objects"))
        ],
        "lines": [_figures(row, LINE_FIGURES) for row in entries(content.get("lines"))],
        "zones": [_figures(row, ZONE_FIGURES) for row in entries(content.get("zones"))],
        "interval_s": _number(content, "interval_s"),
        "intervals": [_interval(row) for row in entries(content.get("intervals"))],
        "film": content.get("film") is True,
        "film_begin": _number(content, "film_begin"),
        "complete": content.get("complete") is True,
        "width": _count(source, "width"),
        "height": _count(source, "height"),
        "duration_s": finite(source.get("duration_s")),
        "rate": finite(source.get("rate")),
        "codec": word(source.get("codec"), 30),
        "decoder": word(source.get("decoder"), 20),
        "silent_since": finite(content.get("silent_since")),
        "silent_why": word(content.get("silent_why"), 200),
        "still": still if (still := content.get("still")) in STALLED_STATES else "",
        "still_since": finite(content.get("still_since")),
        "reconnects": _count(content, "reconnects"),
    }


def _figures(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {"name": word(row.get("name"), 40)} | {name: _count(row, name) for name in names}


def _interval(row: Mapping[str, Any]) -> dict[str, Any]:
    lines, zones = table(row.get("lines")), table(row.get("zones"))
    return {
        "at": _number(row, "at"),
        "most": _count(row, "most"),
        "new": _count(row, "new"),
        "lines": {
            word(name, 40): {direction: _count(table(counted), direction) for direction in LINE_FIGURES}
            for name, counted in lines.items()
        },
        "zones": {word(name, 40): _count(zones, name) for name in zones},
    }


def _number(entry: Mapping[str, Any], name: str) -> float:
    return finite(entry.get(name)) or 0.0


def _count(entry: Mapping[str, Any], name: str) -> int:
    return max(0, int(_number(entry, name)))
