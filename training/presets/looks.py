"""What a program does instead of training when it is told to show something: AIP_SHOW → what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import layers, preview, profiling

LOOKS: Mapping[str, Callable[[Any], int]] = {
    "batch": preview.write,
    "layers": layers.write,
    "profile": profiling.write,
}
