"""Modes in which a program shows something instead of training: value of AIP_SHOW → function that writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import layers, preview, profiling

MODES: Mapping[str, Callable[[Any], int]] = {
    "batch": preview.write,
    "layers": layers.write,
    "profile": profiling.write,
}
