"""Job stream: one per viewed job and web process. Reads log, rows and points once, hands frames to all viewers.

The log file and the rows are polled, so nothing depends on the broker; a nudge only makes it sooner.
A viewer that reads too slowly loses frames, never memory: frames carry offsets, and a browser that sees
a gap asks for the missing part by REST.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from workers.core import live
from workers.core.models import Job
from workers.jobs.output import logs, metrics

log = logging.getLogger(__name__)

TAIL_S = 0.1
"""Pause between two looks at the file."""
ROWS_S = 2.0
"""Longest pause between two looks at the rows when nobody nudges."""
GUARD_S = 4.0
"""Pause between two checks whether viewers may still look."""
FRAME_BYTES = 32 * 1024
"""Most log bytes in one frame."""
MAX_GAP_BYTES = 512 * 1024
"""A log that grew by more than this meanwhile is shown from its end; the rest is a gap to ask for."""
GAP = -1
"""What new points are said to come after where there are too many for a frame: viewers read the curves anew."""
QUEUE_FRAMES = 64
"""Frames kept for a slow viewer."""

PROGRESS = ("progress", "eta_s", "phase", "phase_done", "phase_total", "phase_times")

Check = Callable[[], Awaitable[bool]]


@dataclass(eq=False)
class Viewer:
    """One socket. `credential` is equal for sockets whose permission can be checked together."""

    credential: str
    still_allowed: Check
    refused: asyncio.Event = field(default_factory=asyncio.Event)
    frames: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(QUEUE_FRAMES))

    def offer(self, frame: str) -> None:
        """Queue a frame, or drop it where the viewer is too slow."""
        try:
            self.frames.put_nowait(frame)
        except asyncio.QueueFull:
            log.debug("a slow viewer misses a frame")


class JobStream:
    """What all viewers of one job in this process see."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        self.viewers: set[Viewer] = set()
        self.attempt = 0
        self.position = 0
        self.counts: dict[str, int] = {}  # of points that viewers know, by key
        self.rows: dict[str, Any] = {}
        self.ready = asyncio.Event()
        self._nudged = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to look; ends with `stop`."""
        self._tasks = [asyncio.create_task(work()) for work in (self._follow, self._listen, self._guard)]

    async def stop(self) -> None:
        """End all tasks of this watch."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hello(self) -> str:
        """First frame of a new viewer: the position of the stream."""
        return _frame(
            "hello",
            attempt=self.attempt,
            size=self.position,
            last_id=sum(self.counts.values()),
            job=self._public(self.rows),
        )

    def broadcast(self, frame: str) -> None:
        """Hand one frame to every viewer."""
        for viewer in self.viewers:
            viewer.offer(frame)

    async def _follow(self) -> None:
        looked = 0.0
        while True:
            try:
                if not self.ready.is_set() or self._nudged.is_set() or time.monotonic() - looked >= ROWS_S:
                    self._nudged.clear()
                    looked = time.monotonic()
                    await self._send_rows()
                    self.ready.set()
                await self.send_log()
            except Exception:
                log.exception("job=%s watch stumbled, it goes on", self.job_id)
                self.ready.set()
            await asyncio.sleep(TAIL_S)

    async def _listen(self) -> None:
        """Turn nudges of the channel layer into an earlier look."""
        while True:
            layer = get_channel_layer()
            if layer is None:
                return
            try:
                channel = await layer.new_channel()
                await layer.group_add(live.job_group(self.job_id), channel)
                try:
                    while True:
                        await layer.receive(channel)
                        self._nudged.set()
                finally:
                    await layer.group_discard(live.job_group(self.job_id), channel)
            except Exception as exc:  # noqa: BLE001 - the broker is away: polling goes on alone
                log.info("job=%s no nudges for now: %s", self.job_id, exc)
                await asyncio.sleep(ROWS_S)

    async def _guard(self) -> None:
        """Disconnect viewers who may no longer see the job."""
        while True:
            await asyncio.sleep(GUARD_S)
            verdicts: dict[str, bool] = {}
            for viewer in list(self.viewers):
                if viewer.credential not in verdicts:
                    try:
                        verdicts[viewer.credential] = await viewer.still_allowed()
                    except Exception:
                        log.exception("job=%s permission not checked", self.job_id)
                        verdicts[viewer.credential] = False
                if not verdicts[viewer.credential]:
                    viewer.refused.set()

    async def send_log(self) -> None:
        """Read what the log file grew by and send it, at most `MAX_GAP_BYTES` bytes of it."""
        if not self.attempt:
            return
        path = logs.path_of(Job(pk=self.job_id), self.attempt)
        size = await asyncio.to_thread(logs.size_of, path)
        if size < self.position:  # the file was cut: begin again
            self.position = 0
        if size - self.position > MAX_GAP_BYTES:
            self.position = await asyncio.to_thread(logs.line_start, path, size - FRAME_BYTES, size)
        while self.position < size:
            limit = min(FRAME_BYTES, size - self.position)  # the file may be longer than what readers see of it
            text, used = await asyncio.to_thread(logs.read, path, self.position, limit)
            if not used:
                return
            frame = _frame(
                "log", attempt=self.attempt, offset=self.position, next_offset=self.position + used, text=text
            )
            self.position += used
            self.broadcast(frame)

    async def _send_rows(self) -> None:
        rows, points, counts = await self._read_rows(self.job_id, self.counts, self.attempt)
        if rows is None:
            return
        if rows["attempt_number"] != self.attempt:
            had_attempt = bool(self.attempt)
            self.attempt = rows["attempt_number"]
            path = logs.path_of(Job(pk=self.job_id), self.attempt)
            self.position = 0 if had_attempt else await asyncio.to_thread(logs.size_of, path)
        if points or points is None:
            after = GAP if points is None else sum(self.counts.values())
            last_id = sum(counts.values())
            self.broadcast(_frame("metrics", attempt=self.attempt, after=after, last_id=last_id, points=points or {}))
        self.counts = counts
        if rows != self.rows:
            frame = _frame("state", job=self._public(rows), header=self._header(rows) != self._header(self.rows))
            self.rows = rows
            self.broadcast(frame)

    @staticmethod
    @database_sync_to_async
    def _read_rows(
        job_id: int, counts: dict[str, int], attempt: int
    ) -> tuple[dict[str, Any] | None, dict[str, list[list[float | None]]] | None, dict[str, int]]:
        columns = ("state", "desired", "attempt_number", "reason", "message", "wait_code", "wait_args", "position")
        rows = Job.objects.filter(pk=job_id).values(*columns, "eta", *PROGRESS).first()
        if rows is None:
            return None, {}, counts
        rows["eta"] = rows["eta"].isoformat() if rows["eta"] else None
        job = Job(pk=job_id, attempt_number=rows["attempt_number"])
        if attempt != rows["attempt_number"]:
            return rows, {}, metrics.counts(job)
        return rows, *metrics.since(job, counts)

    @staticmethod
    def _public(rows: dict[str, Any]) -> dict[str, Any]:
        keys = ("state", "desired", "attempt_number", *PROGRESS, "position", "eta")
        return {key: rows.get(key) for key in keys}

    @staticmethod
    def _header(rows: dict[str, Any]) -> tuple[Any, ...]:
        """What the header of a page shows in words: when this changes, browsers fetch it again."""
        keys = ("state", "desired", "attempt_number", "reason", "message", "wait_code", "wait_args", "position")
        return tuple(rows.get(key) for key in keys)


_streams: dict[tuple[int, int], JobStream] = {}  # by event loop and job


def _key(job_id: int) -> tuple[int, int]:
    return id(asyncio.get_running_loop()), job_id


async def join(job_id: int, viewer: Viewer) -> None:
    """Show `viewer` the job from now on. Frames count from the hello on."""
    watch = _streams.get(_key(job_id))
    if watch is None:
        watch = _streams[_key(job_id)] = JobStream(job_id)
        watch.start()
    watch.viewers.add(viewer)  # before waiting, so that a leaving neighbour does not end the watch
    await watch.ready.wait()
    viewer.offer(watch.hello())


async def leave(job_id: int, viewer: Viewer) -> None:
    """Forget `viewer`; the last one ends the watch."""
    watch = _streams.get(_key(job_id))
    if watch is None:
        return
    watch.viewers.discard(viewer)
    if not watch.viewers:
        del _streams[_key(job_id)]
        await watch.stop()


def _frame(kind: str, **content: Any) -> str:
    return json.dumps({"type": kind, **content}, separators=(",", ":"))
