"""Serve parsed requests; knows no routes and no headers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.server import decode, oip
from inference.server.batcher import Answer, Batcher, Entry
from inference.server.engine import Engine
from inference.server.metrics import Metrics
from inference.server.refusals import BadRequest, NotAnImage
from inference.server.requested import Requested
from inference.server.settings import Settings
from inference.server.spec import ModelSpec
from inference.task_kinds import TASKS

PREDICTIONS = "predictions"  # an extra output: one JSON text per picture of a BYTES input
Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Call:
    """One caller: the deadline of the answer, and whether anybody still listens."""

    deadline: float
    is_gone: Callable[[], Awaitable[bool]] | None = None


class Service:
    """One loaded model with its queue."""

    def __init__(self, settings: Settings, spec: ModelSpec, engine: Engine) -> None:
        self.settings, self.spec, self.engine = settings, spec, engine
        self.metrics = Metrics()
        self.batcher = Batcher(
            engine.run,
            max_batch=settings.max_batch if engine.batches else 1,
            max_delay_s=settings.max_delay_s,
            queue_limit=settings.queue_limit,
            even=engine.even,
            on_batch=self.metrics.ran,
        )
        self.ready = False
        self._inputs = {info.name: info for info in engine.inputs}
        self._outputs = {info.name: info for info in engine.outputs}
        self._pool = ThreadPoolExecutor(settings.decode_threads, thread_name_prefix="decode")

    def start(self) -> None:
        """Begin to serve; to be called inside the event loop."""
        self.batcher.start()
        self.ready = True

    async def stop(self) -> None:
        self.ready = False
        await self.batcher.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def on_its_way(self) -> Iterator[Callable[[], None]]:
        """Tell the batcher that a request is coming; call the returned function when it has come."""
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
        samples, placements = await self._decode([data], requested)
        decoded = time.perf_counter()
        answer = await self._ask(samples, (), call, arrived)
        answered = time.perf_counter()
        predictions = await self._read(answer.outputs, placements, requested)
        ended = time.perf_counter()
        timing = {
            "decode": decoded - started,
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

    async def infer(self, sent: oip.InferRequest, call: Call, arrived: Callable[[], None]) -> tuple[bytes, int | None]:
        """Answer an Open Inference Protocol request: body, and length of its JSON part if binary."""
        wanted = self._wanted(sent)
        tensors = tuple(name for name in wanted if name != PREDICTIONS)
        placements: list[decode.Placement] = []
        requested = Requested.from_values(sent.parameters) if sent.pictures else Requested()
        if sent.pictures:
            feeds, placements = await self._decode(self._pictures(sent), requested)
        else:
            feeds = self._checked(sent.tensors)
        answer = await self._ask(feeds, () if PREDICTIONS in wanted else tensors, call, arrived)
        outputs: dict[str, NDArray[np.generic] | Sequence[bytes]] = {n: answer.outputs[n] for n in tensors}
        if PREDICTIONS in wanted:
            predictions = await self._read(answer.outputs, placements, requested)
            outputs[PREDICTIONS] = [json.dumps(one, separators=(",", ":")).encode() for one in predictions]
        head = {"model_name": self.settings.model_name, "model_version": self.settings.model_version}
        if sent.id:
            head["id"] = sent.id
        return oip.answer(head, outputs, wanted)

    def _wanted(self, sent: oip.InferRequest) -> dict[str, bool]:
        """Name → binary of the outputs to send."""
        if not sent.outputs:
            names = [PREDICTIONS] if sent.pictures else list(self._outputs)
            return dict.fromkeys(names, sent.binary)
        for output in sent.outputs:
            known = output.name in self._outputs or (output.name == PREDICTIONS and self.spec.input)
            if not known:
                raise BadRequest(f"The model has no output {output.name!r}.")
            if output.name == PREDICTIONS and not sent.pictures:
                raise BadRequest(f"{PREDICTIONS!r} needs pictures: send the input as BYTES.")
        return {output.name: output.binary for output in sent.outputs}

    def _pictures(self, sent: oip.InferRequest) -> Sequence[bytes]:
        if self.spec.input is None:
            raise BadRequest("This model came without model.json; send tensors instead of pictures.")
        if sent.tensors or list(sent.pictures) != [self.spec.input.name]:
            raise BadRequest(f"Pictures belong into the one input {self.spec.input.name!r}.")
        images = sent.pictures[self.spec.input.name]
        self._limit(len(images))
        return images

    def _checked(self, tensors: Arrays) -> Arrays:
        for name in self._inputs:
            if name not in tensors:
                raise BadRequest(f"Input {name!r} is missing.")
        for name, array in tensors.items():
            if name not in self._inputs:
                raise BadRequest(f"The model has no input {name!r}.")
            oip.check(self._inputs[name], array)
        if self.engine.batches:
            sizes = {array.shape[0] for array in tensors.values()}
            if len(sizes) != 1:
                raise BadRequest("All inputs need the same first size, the batch.")
            self._limit(sizes.pop())
        return tensors

    def _limit(self, count: int) -> None:
        if not 1 <= count <= self.settings.request_batch_limit:
            limit = self.settings.request_batch_limit
            raise BadRequest(f"One request may hold 1 to {limit} samples, not {count}.")

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
            done = await asyncio.gather(*(loop.run_in_executor(self._pool, work, one) for one in images))
        except decode.BadImage as exc:
            raise NotAnImage(str(exc)) from None
        except decode.BadBox as exc:
            raise BadRequest(str(exc)) from None
        samples = done[0][0][None] if len(done) == 1 else np.stack([sample for sample, _ in done])
        return {spec.name: samples}, [placement for _, placement in done]

    async def _ask(self, feeds: Arrays, wanted: tuple[str, ...], call: Call, arrived: Callable[[], None]) -> Answer:
        arrived()
        count = next(iter(feeds.values())).shape[0] if self.engine.batches else 1
        future = asyncio.get_running_loop().create_future()
        return await self.batcher.submit(Entry(feeds, wanted, count, call.deadline, future, call.is_gone))

    async def _read(
        self, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
    ) -> list[list[dict[str, Any]]]:
        answer = TASKS[self.spec.task].answer
        if not answer.slow:
            return answer.read(self.spec, outputs, placements, requested)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, answer.read, self.spec, outputs, placements, requested)
