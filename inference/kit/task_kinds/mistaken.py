"""Kinds of mistakes of predictions with a location, as reported by detection/mistakes.py."""

from __future__ import annotations

CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND, MISSED = KINDS = (
    "class", "location", "both", "duplicate", "background", "missed",
)  # fmt: skip
