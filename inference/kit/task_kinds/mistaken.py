"""Kinds of mistakes that answers with a place can be: what detection/mistakes.py tells, and readers ask for."""

from __future__ import annotations

CLASS, LOCATION, BOTH, DUPLICATE, BACKGROUND, MISSED = KINDS = (
    "class", "location", "both", "duplicate", "background", "missed",
)  # fmt: skip
