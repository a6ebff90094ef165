"""Pictures on their way from the process that decodes them to the one that looks at them, in memory that both share."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
FILE_SLOTS, STREAM_SLOTS = 4, 2  # pictures on their way; of a stream few, as they age there


@dataclass(frozen=True)
class Layout:
    """How the pictures of a source lie in the memory.

    Args:
        width, height: of the source, upright.
        look: shape of what the model sees, without any edge around it.
        shown: shape of what people see.
    """

    width: int
    height: int
    look: tuple[int, int, int]
    shown: tuple[int, int, int]
    slots: int

    @property
    def slot_bytes(self) -> int:
        return _size(self.look) + _size(self.shown)

    def views(self, memory: mmap.mmap, slot: int) -> tuple[Pixels, Pixels]:
        """What the model and what people see of the picture in a slot."""
        start = slot * self.slot_bytes
        look = np.frombuffer(memory, np.uint8, _size(self.look), start).reshape(self.look)
        shown = np.frombuffer(memory, np.uint8, _size(self.shown), start + _size(self.look)).reshape(self.shown)
        return look, shown

    def as_json(self) -> dict[str, Any]:
        return {
            "width": self.width, "height": self.height, "look": self.look, "shown": self.shown, "slots": self.slots
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Layout:
        return cls(
            content["width"], content["height"], tuple(content["look"]), tuple(content["shown"]), content["slots"]
        )


@dataclass(frozen=True)
class Picture:
    """One frame; `look` and `shown` are valid until the next one is requested.

    Args:
        at: seconds since the source began.
        pts: the source's own count of time, which says exactly which picture it is.
        shown: None where it was not requested.
    """

    at: float
    pts: int
    look: Pixels
    shown: Pixels | None


def _size(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]
