"""Which models of a host are being loaded or run, in a file that outlives a crash of the process.

Each has a slot of 64 bytes in a mapped file: what it does now, then its name. A store to mapped memory costs no system
call and stays when the process is killed in the next moment.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.engine import Loaded, Tensors

FILE = "at_work"  # in the outputs of a host
SLOT, SLOTS = 64, 256
FREE, IDLE, LOADS, RUNS = b"\0", b"-", b"L", b"R"


class NoSlot(Exception):
    """More models than there are slots."""


class Slots:
    """The slots of one process.

    Args:
        path: the file, created new; None: nothing is stored.
    """

    def __init__(self, path: Path | None) -> None:
        self._map: mmap.mmap = mmap.mmap(-1, SLOT * SLOTS)
        if path is not None:
            path.write_bytes(bytes(SLOT * SLOTS))
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), SLOT * SLOTS)

    def acquire(self, name: str) -> Slot:
        """Return a free slot, marked with a name of at most 63 bytes.

        Raises:
            NoSlot: all are taken.
        """
        for start in range(0, SLOT * SLOTS, SLOT):
            if self._map[start : start + 1] == FREE:
                self._map[start + 1 : start + SLOT] = name.encode()[: SLOT - 1].ljust(SLOT - 1, b"\0")
                self._map[start : start + 1] = IDLE
                return Slot(self._map, start)
        raise NoSlot(f"A process holds at most {SLOTS} models.")


class Slot:
    """What one model does now."""

    def __init__(self, shared: mmap.mmap, start: int) -> None:
        self._map, self._start = shared, start

    @contextmanager
    def mark(self, act: bytes) -> Iterator[None]:
        """Say that it does something for as long as this lasts."""
        start = self._start
        self._map[start : start + 1] = act
        try:
            yield
        finally:
            self._map[start : start + 1] = IDLE

    def free(self) -> None:
        """Hand it back."""
        self._map[self._start : self._start + 1] = FREE


class Marked:
    """An engine that says while it runs."""

    def __init__(self, engine: Loaded, slot: Slot) -> None:
        self.engine, self.slot = engine, slot
        self.inputs, self.outputs, self.provider = engine.inputs, engine.outputs, engine.provider
        self.batches, self.even = engine.batches, engine.even

    def run(self, feeds: Tensors, wanted: Sequence[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """As the engine's."""
        with self.slot.mark(RUNS):
            return self.engine.run(feeds, wanted)

    def warm_up(self) -> None:
        """As the engine's."""
        self.engine.warm_up()


def read(data: bytes) -> Mapping[str, bytes]:
    """Return name → LOADS or RUNS of the models that were active when a process ended; accepts any content."""
    acts = {}
    for start in range(0, min(len(data), SLOT * SLOTS), SLOT):
        act, name = data[start : start + 1], data[start + 1 : start + SLOT].rstrip(b"\0")
        if act in (LOADS, RUNS):
            acts[name.decode("ascii", "replace")] = act
    return acts
