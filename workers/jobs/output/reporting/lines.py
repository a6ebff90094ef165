"""Whole lines of a file that grows, from where the last look ended. Pure but for the file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from workers.jobs.output.reporting.harvest import Harvest
from workers.jobs.output.reporting.watched import Watched

CHUNK = 256 * 1024
MAX_BYTES = 64 * 1024


def new(watched: Watched, harvest: Harvest) -> Iterator[bytes]:
    """Whole lines, each once, too long ones left out; the position is behind the line that is handed out."""
    while not harvest.is_full:
        begin = watched.position
        data = os.pread(watched.descriptor, CHUNK, begin)
        if not data:
            return
        end = data.rfind(b"\n") + 1
        if not end:
            if len(data) < CHUNK:
                return
            harvest.miss("line_too_long")  # its rest, up to its end, is no line that anybody reads
            watched.position += len(data)
            harvest.taken += len(data)
            continue
        harvest.taken += end
        for line in data[:end].split(b"\n")[:-1]:
            watched.position += len(line) + 1
            if len(line) > MAX_BYTES:
                harvest.miss("line_too_long")
            elif line.strip():
                yield line
