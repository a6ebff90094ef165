"""A model's answers to pictures, read as a service reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
from PIL import Image

from inference.batch.predictor.chunks import Line
from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.prediction.samples import UNREADABLE, Pictures, Unopened
from inference.kit.task_kinds import TASKS

AHEAD = 3  # batches of pictures that are decoded before they are needed


@dataclass
class Opened:
    """A decoded image: `pixels` [C, H, W] and its placement in them, or `image` if it is predicted in tiles.

    `error` says why there is neither.
    """

    index: int
    path: str
    pixels: decode.Floats | None = None
    placement: decode.Placement | None = None
    image: Image.Image | None = None
    error: str = ""

    def line(self, **more: Any) -> Line:
        return {"n": self.index, "path": self.path, **more}


class Predictor:
    """A model with the options of its predictions.

    Args:
        requested: what a caller of a service may ask: lowest score, most objects.
        batch: pictures, or tiles of one, in one run of the model.
        max_pixels: pictures with more of them are not opened.
        threads: that decode pictures.
    """

    def __init__(
        self,
        spec: ModelSpec,
        engine: Loaded,
        pictures: Pictures,
        requested: Requested,
        *,
        batch: int,
        max_pixels: int,
        threads: int = 2,
    ) -> None:
        self.spec, self.engine, self.pictures, self.requested = spec, engine, pictures, requested
        self.input = cast(InputSpec, spec.input)
        self.batch = batch if engine.batches else 1
        self.max_pixels, self.threads = max_pixels, threads
        self.tiled = self.input.overlap is not None

    def lines(self, samples: Iterable[tuple[int, str]]) -> Iterator[list[Line]]:
        """Yield the lines of (index, path) in their order, as many at a time as one run of the model predicts."""
        rest = iter(samples)
        waiting: deque[Future[Opened]] = deque()
        limit = 2 if self.tiled else AHEAD * self.batch
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="decode")
        try:
            while True:
                waiting.extend(pool.submit(self._open, *sample) for sample in islice(rest, limit - len(waiting)))
                if not waiting:
                    return
                count = 1 if self.tiled else min(self.batch, len(waiting))
                yield self._predict([waiting.popleft().result() for _ in range(count)])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _open(self, index: int, path: str) -> Opened:
        opened = Opened(index, path)
        try:
            image = decode.open_image(self.pictures.read(path), max_pixels=self.max_pixels)
            if self.tiled:
                opened.image = image
            else:
                opened.pixels, opened.placement = decode.preprocess(image, self.input)
        except Unopened as exc:
            opened.error = exc.code
        except decode.BadImage:
            opened.error = UNREADABLE
        return opened

    def _predict(self, opened: list[Opened]) -> list[Line]:
        if self.tiled:
            return [self._of_tiles(picture) for picture in opened]
        good = [picture for picture in opened if picture.pixels is not None]
        answers: dict[int, tuple[decode.Placement, list[dict[str, Any]]]] = {}
        if good:
            outputs = self.engine.run(
                {self.input.name: np.stack([cast(decode.Floats, picture.pixels) for picture in good])}
            )
            placements = [cast(decode.Placement, picture.placement) for picture in good]
            read = TASKS[self.spec.task].answer.read(self.spec, outputs, placements, self.requested)
            answers = {
                picture.index: pair for picture, pair in zip(good, zip(placements, read, strict=True), strict=True)
            }
        return [
            _line(picture, *answers[picture.index]) if picture.index in answers else picture.line(error=picture.error)
            for picture in opened
        ]

    def _of_tiles(self, picture: Opened) -> Line:
        start = TASKS[self.spec.task].answer.joining
        if picture.image is None:
            return picture.line(error=picture.error)
        if start is None:
            raise RuntimeError(f"a {self.spec.task} model with tiles was let in")
        left, joined = decode.looks(picture.image, self.input), start(self.spec, picture.image.size)
        while tiles := list(islice(left, self.batch)):
            outputs = self.engine.run({self.input.name: np.stack([pixels for pixels, _ in tiles])})
            joined.add(outputs, [placement for _, placement in tiles])
        spec, joined_outputs, placement = joined.result()
        (read,) = TASKS[spec.task].answer.read(spec, joined_outputs, [placement], self.requested)
        return _line(picture, placement, read)


def _line(picture: Opened, placement: decode.Placement, predictions: list[dict[str, Any]]) -> Line:
    return picture.line(width=placement.width, height=placement.height, predictions=predictions)
