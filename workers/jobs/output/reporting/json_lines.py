"""Metrics as JSON lines: an object a line that says its step. Pure.

Lightning Fabric, timm, detectron2, MMEngine and many own scripts write so. A file whose first lines say no step holds
something else, predictions say, and is left alone.
"""

from __future__ import annotations

import json
from typing import Any

from aiplatform.lib.numbers import finite
from workers.jobs.output.reporting import lines
from workers.jobs.output.reporting.harvest import Harvest, Source, step_of
from workers.jobs.output.reporting.watched import Watched

STEPS = ("step", "global_step", "iteration", "iter", "epoch")
TIMES = ("time", "timestamp", "wall_time", "_timestamp")
LOOKED_AT = 64 * 1024  # bytes without any step, after which a file is left alone
MAX_NAMES = 200  # of one line


def read(watched: Watched, harvest: Harvest) -> None:
    """Take in new lines."""
    source = Source("lines", watched.path.partition("/")[2])
    for line in lines.new(watched, harvest):
        row = _object(line)
        name, step = step_in(row)
        if step is None:
            if not watched.memory.get("useful") and watched.position > LOOKED_AT:
                watched.give_up()
                return
            continue
        watched.memory["useful"] = True
        at = moment_in(row) or watched.changed_at
        for key, number in numbers_in(row):
            if key != name and key not in STEPS and key not in TIMES:
                harvest.point(source, key, step, number, at)


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def step_in(row: dict[str, Any]) -> tuple[str, int | None]:
    """Which entry says the step, and the step."""
    for name in STEPS:
        if (step := step_of(row.get(name))) is not None:
            return name, step
    return "", None


def moment_in(row: dict[str, Any]) -> float:
    """The unix time of a row, 0.0 where it says none."""
    for name in TIMES:
        number = finite(row.get(name))
        if number is not None and 1e9 < number < 1e11:
            return number
    return 0.0


def numbers_in(row: dict[str, Any]) -> list[tuple[str, float]]:
    """Its numbers by name, those of an object within it as "object/name"."""
    pairs: list[tuple[str, float]] = []
    for key, value in row.items():
        inner = (
            [(f"{key}/{name}", value_of) for name, value_of in value.items()]
            if isinstance(value, dict)
            else [(key, value)]
        )
        pairs += [(name, number) for name, value_of in inner if (number := finite(value_of)) is not None]
        if len(pairs) >= MAX_NAMES:
            break
    return pairs[:MAX_NAMES]
