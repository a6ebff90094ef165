"""Serve parsed requests; knows no routes and no headers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.refusals import AnswerTooLarge, BadRequest, NotAnImage
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec
from inference.kit.models import oip, tensors
from inference.kit.models.statistics import Hours, counted
from inference.kit.models.tensors import PREDICTIONS, Arrays
from inference.kit.task_kinds import TASKS
from inference.serving.server.batcher import Answer, Batcher, Entry
from inference.serving.server.image_sampling import Keeper
from inference.serving.server.metrics import Metrics
from inference.serving.server.settings import Settings


@dataclass(frozen=True)
class Call:
    """One caller: the deadline of the answer, and whether anybody still listens."""

    deadline: float
    is_gone: Callable[[], Awaitable[bool]] | None = None


@dataclass(frozen=True)
class _Inference:
    """What the model answered to pictures, and how to read it."""

    spec: ModelSpec
    placements: list[decode.Placement]
    answer: Answer
    decode_s: float


class Service:
    """One loaded model with its queue.

    Args:
        pool: threads that decode for several services; None: some of its own.
    """

    def __init__(
        self, settings: Settings, spec: ModelSpec, engine: Loaded, pool: ThreadPoolExecutor | None = None
    ) -> None:
        self.settings, self.spec, self.engine = settings, spec, engine
        self.metrics = Metrics()
        self.hours = Hours()
        self.keeper = Keeper(percent=settings.keep_percent, below=settings.keep_below)
        self.batcher = Batcher(
            engine.run,
            max_batch=settings.max_batch if engine.batches else 1,
            max_delay_s=settings.max_delay_s,
            queue_limit=_queue_limit(settings, spec),
            even=engine.even,
            on_batch=self.metrics.ran,
        )
        self.ready = False
        self.tiled = spec.input is not None and spec.input.overlap is not None
        self._inputs = {info.name: info for info in engine.inputs}
        self._outputs = {info.name: info for info in engine.outputs}
        self._owns_pool = pool is None
        self._pool = pool or ThreadPoolExecutor(settings.decode_threads, thread_name_prefix="decode")

    def start(self) -> None:
        """Start serving; must be called inside the event loop."""
        self.batcher.start()
        self.ready = True

    async def stop(self) -> None:
        self.ready = False
        await self.batcher.stop()
        if self._owns_pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        if self.settings.left_in is not None:
            self.hours.leave(self.settings.left_in)

    @contextmanager
    def on_its_way(self) -> Iterator[Callable[[], None]]:
        """Announce a request to the batcher; call the returned function when it has arrived."""
        self.batcher.on_their_way += 1
        here = False

        def arrived() -> None:
            nonlocal here
            if not here:
                here = True
                self.batcher.on_their_way -= 1

        try:
            yield arrived
        finally:
            arrived()

    async def predict(
        self, data: bytes, requested: Requested, call: Call, arrived: Callable[[], None]
    ) -> dict[str, Any]:
        """Return the predictions for one image, as JSON.

        Raises:
            BadRequest: the model came without a description, so pictures mean nothing to it; or a region was given that
                shows nothing, or to a model that looks at whole pictures.
            NotAnImage: the bytes cannot be read.
        """
        started = time.perf_counter()
        if self.tiled:
            result = await self._run_tiles(data, requested, call, arrived)
        else:
            samples, placements = await self._decode([data], requested)
            decoded = time.perf_counter()
            result = _Inference(
                self.spec, placements, await self._run_model(samples, (), call, arrived), decoded - started
            )
        answer, placements = result.answer, result.placements
        answered = time.perf_counter()
        predictions = await self._read(result.spec, answer.outputs, placements, requested)
        ended = time.perf_counter()
        self._record(data, predictions[0], requested, self._usually(result.spec, answer.outputs, placements))
        timing = {
            "decode": result.decode_s,
            "queue": answer.queue_s,
            "inference": answer.run_s,
            "postprocess": ended - answered,
            "total": ended - started,
        }
        return {
            "model": self.settings.model_name,
            "version": self.settings.model_version,
            "task": self.spec.task,
            "image": {"width": placements[0].width, "height": placements[0].height},
            "predictions": predictions[0],
            "batch": answer.batch,
            "timing_ms": {name: round(1000 * seconds, 2) for name, seconds in timing.items()},
        }

    def _record(
        self,
        data: bytes,
        predictions: list[dict[str, Any]],
        requested: Requested,
        usually: Callable[[], list[list[dict[str, Any]]]],
        index: int = 0,
    ) -> None:
        """Count what a picture and its answers are like, and keep it if a rule says so; after the answer was made.

        Answers are those to the model's own thresholds, whatever a caller asks for, or counts would tell of callers;
        none to a region. `usually` reads them all, the picture's at `place`.
        """
        best_only = TASKS[self.spec.task].answer.best_only
        is_whole_image, own = requested.region is None, requested.score_threshold is None
        if is_whole_image and own:
            self.keeper.consider(data, counted(predictions, best_only=best_only))
        counts = self.settings.statistics and self.hours.wanted()
        keeps = is_whole_image and not own and self.keeper.has_rules
        if not counts and not keeps:
            return

        def record() -> None:
            with contextlib.suppress(Exception):  # decoders raise anything; the model has answered
                answers = (
                    counted(predictions if own else usually()[index], best_only=best_only) if is_whole_image else ()
                )
                if keeps:
                    loop.call_soon_threadsafe(self.keeper.consider, data, answers)
                if counts:
                    features = self.hours.read(data, max_pixels=self.settings.max_pixels)
                    loop.call_soon_threadsafe(self.hours.add, features, answers)

        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._pool, record)

    async def infer(self, sent: oip.InferRequest, call: Call, arrived: Callable[[], None]) -> tuple[bytes, int | None]:
        """Answer an Open Inference Protocol request: body, and length of its JSON part if binary."""
        wanted = tensors.wanted(self.spec, self._outputs, sent)
        raw = tuple(name for name in wanted if name != PREDICTIONS)
        placements: list[decode.Placement] = []
        requested = Requested.from_values(sent.parameters) if sent.pictures else Requested()
        if sent.pictures and self.tiled:
            return await self._infer_tiled(sent, wanted, requested, call, arrived)
        if sent.pictures:
            feeds, placements = await self._decode(self._pictures(sent), requested)
        else:
            max_batch = self.settings.request_batch_limit
            feeds = tensors.feeds(self.spec, self.engine, self._inputs, sent.tensors, limit=max_batch)
        answer = await self._run_model(feeds, () if PREDICTIONS in wanted else raw, call, arrived)
        outputs: dict[str, NDArray[np.generic] | Sequence[bytes]] = {n: answer.outputs[n] for n in raw}
        if PREDICTIONS in wanted:
            predictions = await self._read(self.spec, answer.outputs, placements, requested)
            usually = self._usually(self.spec, answer.outputs, placements)
            for index, (data, image_predictions) in enumerate(zip(self._pictures(sent), predictions, strict=True)):
                self._record(data, image_predictions, requested, usually, index)
            outputs[PREDICTIONS] = _texts(predictions)
        return self._sent(sent, outputs, wanted)

    async def _infer_tiled(
        self,
        sent: oip.InferRequest,
        wanted: dict[str, bool],
        requested: Requested,
        call: Call,
        arrived: Callable[[], None],
    ) -> tuple[bytes, int | None]:
        """Answer with the predictions of each image; the tensors behind them are those of its tiles."""
        if list(wanted) != [PREDICTIONS]:
            raise BadRequest(f"This model looks at tiles of a picture: ask for {PREDICTIONS!r} alone, or send tensors.")
        predictions = []
        for data in self._pictures(sent):
            result = await self._run_tiles(data, requested, call, arrived)
            rows = await self._read(result.spec, result.answer.outputs, result.placements, requested)
            self._record(data, rows[0], requested, self._usually(result.spec, result.answer.outputs, result.placements))
            predictions += rows
        return self._sent(sent, {PREDICTIONS: _texts(predictions)}, wanted)

    def _sent(
        self,
        sent: oip.InferRequest,
        outputs: Mapping[str, NDArray[np.generic] | Sequence[bytes]],
        wanted: dict[str, bool],
    ) -> tuple[bytes, int | None]:
        head = {"model_name": self.settings.model_name, "model_version": self.settings.model_version}
        if sent.id:
            head["id"] = sent.id
        limit = self.settings.max_answer_bytes
        size = sum(
            value.nbytes if isinstance(value, np.ndarray) else sum(map(len, value)) for value in outputs.values()
        )
        if size <= limit:
            body, length = oip.answer(head, outputs, wanted)
            size = len(body)
            if size <= limit:
                return body, length
        raise AnswerTooLarge(
            f"The answer has {math.ceil(size / 2**20)} MiB; at most {limit >> 20} MiB are sent. "
            "Ask for fewer outputs or pictures, or for binary data."
        )

    def _pictures(self, sent: oip.InferRequest) -> Sequence[bytes]:
        return tensors.pictures(self.spec, sent, limit=self.settings.request_batch_limit)

    async def _decode(self, images: Sequence[bytes], requested: Requested) -> tuple[Arrays, list[decode.Placement]]:
        spec = self.spec.input
        if spec is None:
            raise BadRequest("This model came without model.json; it takes tensors, not pictures.")
        if requested.region and not TASKS[self.spec.task].answer.regions:
            raise BadRequest("This model looks at whole pictures. Leave out region.")

        def work(data: bytes) -> tuple[decode.Floats, decode.Placement]:
            image = decode.open_image(data, max_pixels=self.settings.max_pixels)
            return decode.preprocess(image, spec, requested.region)

        loop = asyncio.get_running_loop()
        try:
            done = await asyncio.gather(*(loop.run_in_executor(self._pool, work, data) for data in images))
        except decode.BadImage as exc:
            raise NotAnImage(str(exc)) from None
        except decode.BadBox as exc:
            raise BadRequest(str(exc)) from None
        samples = done[0][0][None] if len(done) == 1 else np.stack([sample for sample, _ in done])
        return {spec.name: samples}, [placement for _, placement in done]

    async def _run_tiles(
        self, data: bytes, requested: Requested, call: Call, arrived: Callable[[], None]
    ) -> _Inference:
        """Run the tiles of one image, a batch at a time: memory stays bounded, and other requests get their turn."""
        input_spec, joining = self.spec.input, TASKS[self.spec.task].answer.joining
        if input_spec is None or joining is None:
            raise BadRequest("This model came without model.json; it takes tensors, not pictures.")
        if requested.region:
            raise BadRequest("This model looks at whole pictures. Leave out region.")
        loop, started = asyncio.get_running_loop(), time.perf_counter()
        try:
            image = await loop.run_in_executor(
                self._pool, partial(decode.open_image, data, max_pixels=self.settings.max_pixels)
            )
        except decode.BadImage as exc:
            raise NotAnImage(str(exc)) from None
        left, joined = decode.looks(image, input_spec), joining(self.spec, image.size)
        answers: list[Answer] = []
        decode_s = time.perf_counter() - started
        while True:
            started = time.perf_counter()
            tiles = await loop.run_in_executor(self._pool, lambda: list(islice(left, self.batcher.max_batch)))
            if not tiles:
                break
            feeds = {input_spec.name: np.stack([sample for sample, _ in tiles])}
            decode_s += time.perf_counter() - started
            answer = await self._run_model(feeds, (), call, arrived)
            await loop.run_in_executor(self._pool, joined.add, answer.outputs, [placement for _, placement in tiles])
            answers.append(replace(answer, outputs={}))
        spec, joined_outputs, placement = await loop.run_in_executor(self._pool, joined.result)
        waited, ran = sum(run.queue_s for run in answers), sum(run.run_s for run in answers)
        return _Inference(
            spec, [placement], Answer(joined_outputs, waited, ran, max(run.batch for run in answers)), decode_s
        )

    async def _run_model(
        self, feeds: Arrays, wanted: tuple[str, ...], call: Call, arrived: Callable[[], None]
    ) -> Answer:
        arrived()
        count = next(iter(feeds.values())).shape[0] if self.engine.batches else 1
        future = asyncio.get_running_loop().create_future()
        answer = await self.batcher.submit(Entry(feeds, wanted, count, call.deadline, future, call.is_gone))
        self.metrics.waited(answer.queue_s)
        return answer

    def _usually(
        self, spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement]
    ) -> Callable[[], list[list[dict[str, Any]]]]:
        """Gives what reads the answers again, by the model's own thresholds."""
        return lambda: TASKS[spec.task].answer.read(spec, outputs, placements, Requested())

    async def _read(
        self, spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
    ) -> list[list[dict[str, Any]]]:
        answer = TASKS[spec.task].answer
        if not answer.slow:
            return answer.read(spec, outputs, placements, requested)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, answer.read, spec, outputs, placements, requested)


def _queue_limit(settings: Settings, spec: ModelSpec) -> int:
    """Samples that may wait: fewer where each holds its whole picture."""
    if spec.input is None or not spec.input.cuts:
        return settings.queue_limit
    return min(settings.queue_limit, max(settings.request_batch_limit, 4 * settings.max_batch))


def _texts(predictions: Sequence[list[dict[str, Any]]]) -> list[bytes]:
    return [json.dumps(row, separators=(",", ":")).encode() for row in predictions]
