"""Inspect the images of an import on several cores, each by a process of its own.

A process reads one image at a time, as Python does; several threads would mostly wait for each other. An image that
takes its process down is named as damaged and the others are read on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, cast

from django.conf import settings

from aiplatform.lib.wording import message
from datasets.storage import inspector

COMMAND = [sys.executable, "-m", "datasets.storage.inspector"]
MAX_IN_PROCESS = 16  # so few images are read before a process has started
MAX_PROCESSES = 8  # each may hold the pixels of one image of the largest size that is taken
BATCH = 16  # images handed over at once: so many at most are read between two signs of progress
WINDOW = 256 * BATCH


def inspect_all(
    root: Path, sources: Sequence[str], *, stills: Path | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each of `sources` with the facts of its image or its error, in their order, as `inspector.inspect` has them.

    Args:
        stills: folder for the PNG of what moves or no browser shows; None leaves the files as they are.

    Raises:
        RuntimeError: no process could be started.
    """
    if len(sources) < MAX_IN_PROCESS:
        yield from ((source, inspector.inspect(root, source, stills)) for source in sources)
        return
    count = min(os.cpu_count() or 1, MAX_PROCESSES, -(-len(sources) // BATCH))
    processes = [_Process(root, stills) for _ in range(count)]
    free: SimpleQueue[_Process] = SimpleQueue()
    for process in processes:
        free.put(process)

    def answer(batch: Sequence[str]) -> list[dict[str, Any]]:
        process = free.get()
        try:
            return process.inspect(batch)
        finally:
            free.put(process)

    pool = ThreadPoolExecutor(count, thread_name_prefix="inspect")
    try:
        for begin in range(0, len(sources), WINDOW):
            window = sources[begin : begin + WINDOW]
            batches = [window[at : at + BATCH] for at in range(0, len(window), BATCH)]
            for batch, entries in zip(batches, pool.map(answer, batches), strict=True):
                yield from zip(batch, entries, strict=True)
    finally:
        for process in processes:
            process.interrupt()
        pool.shutdown(cancel_futures=True)
        for process in processes:
            process.end()


class _Process:
    """One inspector process, started on first use and again after it died."""

    def __init__(self, root: Path, stills: Path | None) -> None:
        self.arguments = [str(root)] + ([str(stills)] if stills else [])
        self.child: subprocess.Popen[bytes] | None = None
        self.interrupted = False

    def inspect(self, sources: Sequence[str]) -> list[dict[str, Any]]:
        """The entries of `sources`; none after `interrupt`."""
        entries = self._request(sources)
        if entries is None and len(sources) > 1:  # which one was it?
            return [entry for source in sources for entry in self.inspect([source])]
        if entries is None:
            entries = self._request(sources)  # dying once may have been an accident
        return entries or [{"error": message("report.image_ended_reader").as_json()}]

    def _request(self, sources: Sequence[str]) -> list[dict[str, Any]] | None:
        """Return the entries of `sources`; None if the process died on them."""
        if self.interrupted:
            return []
        child = self.child = self.child or self._started()
        stdin, stdout = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
        try:
            stdin.write(json.dumps(sources).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            self.end()
            return None
        entries: list[dict[str, Any]] = json.loads(line)
        return entries

    def _started(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(  # noqa: S603 - our own program and paths of ours
            [*COMMAND, *self.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=settings.BASE_DIR
        )
        if cast(IO[bytes], child.stdout).readline() != inspector.READY:
            child.kill()
            child.communicate()
            raise RuntimeError("A process that inspects images did not start; its own words stand above.")
        return child

    def interrupt(self) -> None:
        """Let a thread that waits for its answers return at once."""
        self.interrupted = True
        if self.child is not None:
            self.child.kill()

    def end(self) -> None:
        """Leave nothing of it behind."""
        child, self.child = self.child, None
        if child is not None:
            child.kill()
            child.communicate()
