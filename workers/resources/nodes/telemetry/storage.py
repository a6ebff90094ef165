"""How fast process trees read from storage and write to it, as the kernel counts it in /proc/PID/io.

Counted is what reached a disk: what the page cache answered is not read again, what waits in it is not written yet. A
process takes over the counts of the children that it waited for, so the sum over a tree goes on where one of them ends
(`wait_task_zombie` in the kernel's exit.c).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

Counts = tuple[int, int]  # bytes read, bytes written


class Storage:
    """Reads rates, so it remembers the previous counters. Not safe for several threads."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self.proc = proc
        self._before: dict[int, tuple[float, Counts]] = {}

    def rates(self, trees: Mapping[int, Iterable[int]]) -> dict[int, tuple[float, float]]:
        """Bytes a second read and written by the processes of each tree since the previous look at it.

        A tree is missing at its first look, and where none of its processes may be looked into.
        """
        moment, rates_by_root, samples = time.monotonic(), {}, {}
        for root, pids in trees.items():
            counts = self._counts(pids)
            if counts is None:
                continue
            samples[root] = (moment, counts)
            before = self._before.get(root)
            if before is not None and moment > before[0]:
                passed = moment - before[0]
                read, written = (max(0, now - then) / passed for now, then in zip(counts, before[1], strict=True))
                rates_by_root[root] = (read, written)
        self._before = samples
        return rates_by_root

    def _counts(self, pids: Iterable[int]) -> Counts | None:
        """The sums over those processes that may be looked into; None where there are none."""
        read = written = 0
        any_seen = False
        for pid in pids:
            try:
                lines = (self.proc / str(pid) / "io").read_text().splitlines()
                table = {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
                read, written = read + table["read_bytes"], written + table["write_bytes"]
            except (OSError, ValueError, KeyError):  # ended meanwhile, or not ours to look into
                continue
            any_seen = True
        return (read, written) if any_seen else None
