"""Metrics of a script: curves on the page of its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.presets.run import current, log_line

from . import values

#: Words of the page rather than curves, see `report`.
WORDS = ("phase",)
MAX_WARNINGS = 20

_warned: set[str] = set()
_state = {"step": -1}


def report(step: Any = None, metrics: Mapping[Any, Any] | None = None, **named: Any) -> None:
    """Record metrics at a step.

        report(step, {"train/loss": loss, "val/accuracy": accuracy})
        report(step, loss=loss)
        report(loss=loss)                      # the step after the last one
        report({"loss": loss})

    Args:
        step: int, NumPy integer or tensor with one element; None counts on from the last reported step.
        metrics: name → real number of any library; NaN and infinity are stored and drawn as gaps. Mappings within
            become "outer/inner". Any name is allowed; "train/…" and "val/…" are drawn together.
        named: the same as keywords. The page also shows `phase` ("packing", "scoring"; a text), its counter
            `phase_done` of `phase_total` or its share `progress` (0 to 1), and `eta_s` (seconds to the end).

    Never raises: a value that is not a number is left out and named once in the log.
    """
    if isinstance(step, Mapping):
        step, metrics = None, {**step, **(metrics or {})}
    at = values.step_of(step) if step is not None else _state["step"] + 1
    if at is None:
        _warn("step", f"{step!r:.80} is not a step; the metrics were recorded at step {_state['step'] + 1}")
        at = _state["step"] + 1
    _state["step"] = at
    row: dict[str, Any] = {}
    for name, value in values.flat({**(metrics or {}), **named}):
        if name in WORDS:
            row[name] = str(value)
            continue
        try:
            row[name] = values.json_number(value)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            _warn(name, f"{type(value).__name__} {value!r:.60} was not recorded: {error}")
    if not row:
        return
    try:
        current().report(at, row)
    except (OSError, ValueError) as error:
        _warn("", f"metrics of step {at} were not recorded: {error}")


def _warn(name: str, message: str) -> None:
    """Write a line of the log, once for each name."""
    if name in _warned or len(_warned) >= MAX_WARNINGS:
        return
    _warned.add(name)
    log_line(f"aip.report{f' {name!r}' if name else ''}: {message}")
