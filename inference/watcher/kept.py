"""What a watch has done: segments of the film and of what was found, and the state between two of them.

A checkpoint is made where a segment ends. A further attempt goes on with the first picture after it, with the same
tracks and counts: what comes out is what would have come out without a break.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference.evaluator.run import Run, write

KEPT = 2  # checkpoints: a reader that finds the newest damaged takes the one before
STATE, EVENTS, SEGMENTS = "state.json", "events.jsonl", "segments"


class Kept:
    """The files of a watch below its outputs."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.segments = run.outputs / SEGMENTS
        self.events = run.outputs / EVENTS
        self._digests: dict[str, str] = {}
        self.segments.mkdir(parents=True, exist_ok=True)

    def bring_back(self) -> dict[str, Any] | None:
        """Take over what an earlier attempt kept; its state, None where this is the first."""
        before = self.run.resume_from
        if before is None:
            self.events.write_bytes(b"")
            return None
        state: dict[str, Any] = json.loads((before / STATE).read_text())
        for kept in sorted(before.glob("segment.*")):
            target = self.segments / kept.name.removeprefix("segment.")
            target.unlink(missing_ok=True)
            _same(kept, target)
        shutil.copyfile(before / EVENTS, self.events)
        return state

    def films(self) -> list[Path]:
        return sorted(self.segments.glob("*.webm"))

    def lines(self) -> list[Path]:
        return sorted(self.segments.glob("*.jsonl"))

    def forget(self, most: int) -> None:
        """Keep the newest segments alone."""
        for files in (self.films(), self.lines()):
            for file in files[:-most]:
                file.unlink()

    def checkpoint(self, step: int, state: Mapping[str, Any]) -> None:
        """Keep the state, and all segments that are whole, where a further attempt finds them."""
        final = self.run.checkpoints / f"step-{step:06d}"
        making = final.with_name(final.name + ".tmp")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        write(making / STATE, json.dumps(state))
        shutil.copyfile(self.events, making / EVENTS)
        digests = {name: _sha256(making / name) for name in (STATE, EVENTS)}
        for file in (*self.films(), *self.lines()):
            name = f"segment.{file.name}"
            _same(file, making / name)
            if name not in self._digests:
                self._digests[name] = _sha256(file)
            digests[name] = self._digests[name]
        meta = {"format": 1, "step": step, "time": time.time(), "metric": None, "files": digests}
        write(making / "meta.json", json.dumps(meta))
        shutil.rmtree(final, ignore_errors=True)
        making.rename(final)
        link = self.run.checkpoints / "latest.tmp"
        link.unlink(missing_ok=True)
        link.symlink_to(final.name)
        link.rename(self.run.checkpoints / "latest")
        for older in sorted(self.run.checkpoints.glob("step-*[0-9]"))[:-KEPT]:
            shutil.rmtree(older, ignore_errors=True)


def _same(source: Path, target: Path) -> None:
    """The same file once more: one copy on the disk where both lie on one, as nobody writes into it again."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
