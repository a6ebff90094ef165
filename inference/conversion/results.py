"""Read what a conversion left: the table of its variants, also while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.conversion import engines
from inference.conversion.converter import variant_catalog
from inference.conversion.models import Conversion
from inference.evaluation.jobs.outputs import entries, folder_of, read_json, table
from inference.registry.prediction_lines import word

MAX_BYTES = 4 << 20
STATES = (variant_catalog.ACCEPTED, variant_catalog.REFUSED, variant_catalog.FAILED)
#: Numbers of a row that rows of the database and pages keep.
FIGURES = ("value", "loss", "agreement", "size_bytes", "images", "seconds", "looks")
#: How many times as fast as the source, with the ends of the interval; only where it is narrow.
SPEEDUPS = ("faster", "faster_low", "faster_high", "more", "more_low", "more_high")
SPEEDS = ("p50_ms", "p95_ms", "images_per_s", "batch", "threads", "load_ms", "memory_mib", "busy", *SPEEDUPS)
INTEGER_FIELDS = ("size_bytes", "images", "looks", "batch", "threads")
MAX_LENGTH = 300


def load(conversion: Conversion) -> dict[str, Any]:
    """The table as its program wrote it, cut down to what is sound; {"rows": []} where there is none yet."""
    return read(folder_of(conversion))


def read(folder: Path) -> dict[str, Any]:
    """Read the table in the outputs of an attempt."""
    document = read_json(folder, "conversion.json", max_bytes=MAX_BYTES)
    if "rows" not in document:
        return {"rows": []}
    return {
        "rows": [row for row in map(_row, entries(document["rows"])) if row],
        "metric": word(document.get("metric"), 50),
        "fastest": word(document.get("fastest"), 20),
        "complete": document.get("complete") is True,
        "tools": {word(name, 30): word(value, 30) for name, value in table(document.get("tools")).items()},
        "looks": _number("looks", table(document.get("calibration"))) or 0,
    }


def _row(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a row with the fields that pages show; None if it names no variant."""
    target, state = fields.get("target"), fields.get("state")
    if target not in (variant_catalog.SOURCE, *variant_catalog.TARGETS) or state not in STATES:
        return None
    row: dict[str, Any] = {"target": target, "state": state, "error": word(fields.get("error"), MAX_LENGTH)}
    row |= {name: _number(name, fields) for name in FIGURES}
    speed = table(fields.get("speed"))
    texts = {name: word(speed.get(name), 100) for name in ("provider", "processor", "onnxruntime")}
    row["speed"] = {name: _number(name, speed) for name in SPEEDS} | texts if finite(speed.get("p50_ms")) else None
    row["summary"] = {
        word(name, 50): value for name, value in table(fields.get("summary")).items() if finite(value) is not None
    }
    row["classes"] = [
        {name: entry[name] for name in entry if isinstance(name, str) and is_sound(entry[name])}
        for entry in entries(fields.get("classes"), dict)
    ]
    row["differences"] = {
        word(name, 100): {side: finite(table(values).get(side)) for side in ("largest", "mean", "range")}
        for name, values in table(fields.get("differences")).items()
    }
    row["sensitive"] = [
        {"node": word(entry.get("node"), 200), "moved": finite(entry.get("moved"))}
        for entry in entries(fields.get("sensitive"), dict)
    ]
    row |= engines.read(fields)
    row["without"] = [word(name, 200) for name in entries(fields.get("without"), str)]
    return row


def _number(name: str, fields: Mapping[str, Any]) -> float | int | None:
    number = finite(fields.get(name))
    return int(number) if number is not None and name in INTEGER_FIELDS else number
