"""What a watch has done: segments of the film and of what was found, and the state between two of them.

A checkpoint is made where a segment ends. A further attempt goes on with the first picture after it, with the same
tracks and counts: what comes out is what would have come out without a break.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference.kit.samples.run import Run, same

MAX_CHECKPOINTS = 2  # checkpoints: a reader that finds the newest damaged takes the one before
STATE, EVENTS, SEGMENTS = "state.json", "events.jsonl", "segments"


class Kept:
    """The files of a watch below its outputs."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.segments = run.outputs / SEGMENTS
        self.events = run.outputs / EVENTS
        self._digests: dict[str, str] = {}
        self.segments.mkdir(parents=True, exist_ok=True)

    def restore(self) -> dict[str, Any] | None:
        """Restore the files of an earlier attempt; returns its state, None where this is the first."""
        before = self.run.resume_from
        if before is None:
            self.events.write_bytes(b"")
            return None
        state: dict[str, Any] = json.loads((before / STATE).read_text())
        for segment in sorted(before.glob("segment.*")):
            target = self.segments / segment.name.removeprefix("segment.")
            target.unlink(missing_ok=True)
            same(segment, target)
        shutil.copyfile(before / EVENTS, self.events)
        return state

    def films(self) -> list[Path]:
        return sorted(self.segments.glob("*.webm"))

    def lines(self) -> list[Path]:
        return sorted(self.segments.glob("*.jsonl"))

    def remove_older(self, limit: int) -> None:
        """Remove all but the newest segments."""
        for files in (self.films(), self.lines()):
            for file in files[:-limit]:
                file.unlink()

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Keep the state, and all segments that are whole, where a further attempt finds them."""
        parts = {f"segment.{file.name}": file for file in (*self.films(), *self.lines())}
        copied: dict[str, Path | str] = {STATE: json.dumps(state), EVENTS: self.events}
        self.run.checkpoint(step, copied, parts, known_digests=self._digests, limit=MAX_CHECKPOINTS)
