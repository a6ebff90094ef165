"""Batch requests that wait at the same time into one run of the model.

Work conserving: while the engine is free, a request runs at once; while it is busy,
requests gather. A batch waits (at most `max_delay_s`) only for requests already on
their way, that is, being read or decoded. So a lone caller never waits.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io.refusals import DeadlineExceeded, Gone, ModelFailed, NotReady, QueueFull

Arrays = Mapping[str, NDArray[np.generic]]
Run = Callable[[Arrays, tuple[str, ...]], dict[str, NDArray[np.generic]]]
log = logging.getLogger("inference.serving.server")
LONG_WAIT_S = 0.05  # after which it is worth asking whether the caller is still there
QUICK_S = 0.0005  # a run this short costs less than handing it to another thread and back


@dataclass(eq=False)
class Entry:
    """One request's tensors: `count` samples along the first axis."""

    feeds: Arrays
    wanted: tuple[str, ...]
    count: int
    deadline: float  # time.monotonic()
    answer: asyncio.Future[Answer]
    is_gone: Callable[[], Awaitable[bool]] | None = None
    queued: float = field(default_factory=time.monotonic)
    kind: tuple[object, ...] = ()  # entries of one kind fit into one run
    waits: bool = False

    def __post_init__(self) -> None:
        shapes = tuple((name, a.dtype.str, a.shape[1:]) for name, a in self.feeds.items())
        self.kind = (shapes, self.wanted)


@dataclass(frozen=True)
class Answer:
    """Outputs of one request, and the seconds spent on each part."""

    outputs: Arrays
    queue_s: float
    run_s: float
    batch: int  # samples in the run that answered it


class Batcher:
    """The queue before one engine; made and used inside one event loop.

    Args:
        max_delay_s: how long a batch waits for requests on their way.
        queue_limit: samples that may wait.
        even: each sample costs the model the same; what it has shown to compute quickly then needs no other thread.
    """

    def __init__(
        self,
        run: Run,
        *,
        max_batch: int,
        max_delay_s: float,
        queue_limit: int,
        even: bool = False,
        on_batch: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        self.run = run
        self.max_batch = max_batch
        self.max_delay_s = max_delay_s
        self.queue_limit = queue_limit
        self.even = even
        self.on_batch = on_batch
        self.waiting: deque[Entry] = deque()
        self.samples = 0  # in `waiting`
        self.on_their_way = 0  # requests accepted whose tensors are not here yet
        self.running_since: float | None = None
        self._seconds_per_sample = 0.0
        self._run_s = math.inf  # of the model alone, per sample: about the slowest of the last runs
        self._blocks: dict[str, NDArray[np.generic]] = {}  # of the engine's thread
        self._arrival = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._serve(), name="batcher")

    async def stop(self) -> None:
        """Answer everything still waiting with 503 and let the current run end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        while self.waiting:
            entry = self.waiting.popleft()
            self._remove(entry)
            _refuse(entry, NotReady("The service is stopping.", retry_after=1))
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def submit(self, entry: Entry) -> Answer:
        """Wait for the entry's answer; a cancelled caller leaves the queue at once.

        Raises:
            QueueFull: too many samples wait already.
            DeadlineExceeded: its time was over before the model got to it.
            ModelFailed: the model refused these tensors.
        """
        if self.samples + entry.count > self.queue_limit:
            wait_s = self._seconds_per_sample * self.samples
            message = f"{self.samples} images are waiting already; try again later."
            raise QueueFull(message, retry_after=max(1, math.ceil(wait_s)))
        self.waiting.append(entry)
        self.samples += entry.count
        entry.waits = True
        self._arrival.set()
        try:
            async with asyncio.timeout_at(_loop_time(entry.deadline)):
                return await entry.answer
        except TimeoutError:
            raise DeadlineExceeded("The answer did not come in time.", retry_after=1) from None
        finally:
            if entry.waits:
                self.waiting.remove(entry)
                self._remove(entry)

    def _remove(self, entry: Entry) -> None:
        entry.waits = False
        self.samples -= entry.count

    async def _serve(self) -> None:
        while True:
            while not self.waiting:
                self._arrival.clear()
                await self._arrival.wait()
            if self.on_their_way and self.samples < self.max_batch:
                await self._wait_for_more()
            batch = await self._next_batch()
            if not batch:
                continue
            self.running_since = started = time.monotonic()
            try:
                outputs = await self._compute(batch)
            except asyncio.CancelledError:
                for entry in batch:
                    _refuse(entry, NotReady("The service is stopping.", retry_after=1))
                raise
            except Exception as exc:  # noqa: BLE001  whatever a model throws concerns its callers, not the server
                await self._blame(batch, exc)
            else:
                _answer(batch, outputs, started)
                size, spent = sum(entry.count for entry in batch), time.monotonic() - started
                self._seconds_per_sample = 0.8 * self._seconds_per_sample + 0.2 * spent / size
                self.on_batch(size, spent)
            finally:
                self.running_since = None

    async def _compute(self, batch: list[Entry]) -> dict[str, NDArray[np.generic]]:
        """Run the batch, so that a slow model never holds up the event loop."""
        if self.even and self._run_s * sum(entry.count for entry in batch) < QUICK_S:
            return self._run(batch)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, batch)

    async def _wait_for_more(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.max_delay_s
        while self.on_their_way and self.samples < self.max_batch:
            self._arrival.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._arrival.wait()
            except TimeoutError:
                return

    async def _next_batch(self) -> list[Entry]:
        """Return the next entries that fit into one run; expired and abandoned ones are removed."""
        batch: list[Entry] = []
        count = 0
        now = time.monotonic()
        while self.waiting:
            entry = self.waiting[0]
            if batch and (entry.kind != batch[0].kind or count + entry.count > self.max_batch):
                break
            self.waiting.popleft()
            self._remove(entry)
            if entry.answer.done():
                continue
            if entry.deadline <= now:
                _refuse(entry, DeadlineExceeded("The answer did not come in time.", retry_after=1))
                continue
            if now - entry.queued > LONG_WAIT_S and entry.is_gone and await entry.is_gone():
                _refuse(entry, Gone("The caller hung up."))
                continue
            batch.append(entry)
            count += entry.count
        return batch

    def _run(self, batch: list[Entry]) -> dict[str, NDArray[np.generic]]:
        started = time.perf_counter()
        outputs = self._outputs(batch)
        spent = (time.perf_counter() - started) / sum(entry.count for entry in batch)
        self._run_s = spent if self._run_s == math.inf else max(spent, 0.9 * self._run_s)
        return outputs

    def _outputs(self, batch: list[Entry]) -> dict[str, NDArray[np.generic]]:
        first = batch[0]
        if len(batch) > 1:
            return self.run({name: self._joined(name, batch) for name in first.feeds}, first.wanted)
        if first.count <= self.max_batch:
            return self.run(first.feeds, first.wanted)
        parts = []  # one request larger than a batch must not take more memory than a batch
        for start in range(0, first.count, self.max_batch):
            cut = slice(start, start + self.max_batch)
            parts.append(self.run({name: a[cut] for name, a in first.feeds.items()}, first.wanted))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _joined(self, name: str, batch: list[Entry]) -> NDArray[np.generic]:
        """The samples of all entries in one block of memory that is used again for every batch."""
        parts = [entry.feeds[name] for entry in batch]
        count, like = sum(entry.count for entry in batch), parts[0]
        if like.dtype == object:  # parcels with pictures in them, which must not be kept
            return np.concatenate(parts)
        block = self._blocks.get(name)
        if block is None or block.shape[1:] != like.shape[1:] or block.dtype != like.dtype or len(block) < count:
            block = self._blocks[name] = np.empty((max(count, self.max_batch), *like.shape[1:]), like.dtype)
        return np.concatenate(parts, out=block[:count])

    async def _blame(self, batch: list[Entry], failure: Exception) -> None:
        """Run each request of a failed batch by itself, so that a bad one does not fail the others."""
        if len(batch) == 1:
            log.warning("the model could not compute a request of %s samples: %s", batch[0].count, failure)
            _refuse(batch[0], ModelFailed(f"The model could not compute this: {failure}"))
            return
        loop = asyncio.get_running_loop()
        for entry in batch:
            started = time.monotonic()
            try:
                outputs = await loop.run_in_executor(self._thread, self._run, [entry])
            except Exception as exc:  # noqa: BLE001  as above: it concerns this caller alone
                log.warning("the model could not compute a request of %s samples: %s", entry.count, exc)
                _refuse(entry, ModelFailed(f"The model could not compute this: {exc}"))
            else:
                _answer([entry], outputs, started)


def _answer(batch: list[Entry], outputs: Arrays, started: float) -> None:
    run_s, size, start = time.monotonic() - started, sum(e.count for e in batch), 0
    for entry in batch:
        if not entry.answer.done():
            own_outputs = outputs
            if len(batch) > 1:
                own_outputs = {name: array[start : start + entry.count] for name, array in outputs.items()}
            entry.answer.set_result(Answer(own_outputs, started - entry.queued, run_s, size))
        start += entry.count


def _refuse(entry: Entry, refusal: Exception) -> None:
    if not entry.answer.done():
        entry.answer.set_exception(refusal)


def _loop_time(deadline: float) -> float:
    return asyncio.get_running_loop().time() + deadline - time.monotonic()
