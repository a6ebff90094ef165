"""How good the demo's model is, in words: what a newcomer may expect of it, and why where that is little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GOOD, USABLE = 0.85, 0.6  # AP50 on the test split
BUSY = 1.3  # so many times longer than on free cores
LATE_FACTOR = 1.25  # of the minutes asked for: from here on the demo says that it takes longer


@dataclass(frozen=True)
class Verdict:
    """The result of the demo; `works` is False for a model that is not presentable."""

    works: bool
    headline: str
    why: str = ""


def judge(ap50: float, figures: dict[str, Any], *, minutes: float) -> Verdict:
    """Say how good a model is.

    Args:
        figures: what the training measured of itself; see the trainer's metrics.json.
        minutes: what was asked for.
    """
    if ap50 >= GOOD:
        return Verdict(works=True, headline=f"The model works: AP50 {ap50:.2f} on unseen images.")
    reason = _reason(figures, minutes)
    if ap50 >= USABLE:
        return Verdict(works=True, headline=f"The model works, but could be better: AP50 {ap50:.2f}.", why=reason)
    return Verdict(
        works=False, headline=f"The model does not work well: AP50 {ap50:.2f}; {GOOD} is typical.", why=reason
    )


def _reason(figures: dict[str, Any], minutes: float) -> str:
    steps, planned = figures.get("steps", 0), figures.get("steps_planned", 0)
    slowdown = figures.get("slowdown", 1.0)
    again = f"Try again when they are idle, or with more time: manage.py demo --minutes {3 * minutes:g}."
    if planned and steps < planned:
        part = f"Only {steps:g} of {planned:g} steps were completed in time"
        if slowdown >= BUSY:
            return f"{part}: the cores are busy with other programs and took {slowdown:.1f} times as long. {again}"
        return (
            f"{part}: this computer is slow, or has few cores. Use more time: manage.py demo --minutes {3 * minutes:g}."
        )
    return (
        "All steps were completed, so time is not the reason; check the number of images (--images), or the job page."
    )


def lateness(row: dict[str, Any], spent_s: float, minutes: float) -> str:
    """Return a message if a running training will take longer than requested, else ""."""
    left = row.get("eta_s")
    if row.get("phase") != "learning" or left is None or spent_s + left < LATE_FACTOR * 60 * minutes:
        return ""
    total = (spent_s + left) / 60
    return f"The cores are busy or slow: this takes about {total:.0f} min instead of {minutes:g}"
