"""Run a model over a split and store every answer, one JSON line per image."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np

from inference.evaluator.run import Run
from inference.evaluator.truth import Sample, Truth
from inference.server import decode
from inference.server.engine import Engine
from inference.server.spec import DecodeSpec, InputSpec, ModelSpec
from inference.task_kinds.served import Line, Scoring

REPORT_EVERY_S = 0.5
Decoded = list[tuple[decode.Floats, decode.Placement]]  # one for each look at an image


class Suspended(Exception):
    """A suspend was requested; what was done so far is in a checkpoint."""


class Predictor:
    """One model over one split.

    Parameters read from the run: `score_threshold` (answers below are not kept),
    `iou_threshold`, `max_detections`, `batch`.
    """

    def __init__(
        self, run: Run, spec: ModelSpec, engine: Engine, truth: Truth, scoring: Scoring, mapping: dict[int, int]
    ) -> None:
        self.run, self.spec, self.engine, self.truth, self.mapping = run, spec, engine, truth, mapping
        self.scoring = scoring
        self.input = cast(InputSpec, spec.input)
        self.batch = int(run.params.get("batch") or 8) if engine.batches else 1
        self.limits = DecodeSpec(
            score_threshold=float(run.params.get("score_threshold") or 0.01),
            iou_threshold=float(run.params.get("iou_threshold") or spec.decode.iou_threshold),
            max_detections=int(run.params.get("max_detections") or 100),
        )
        self.inference_s = 0.0
        self.unreadable: list[str] = []

    def all(self, file: Path) -> list[Line]:
        """Every sample's line, in the samples' order; those already in `file` are not computed again.

        Raises:
            Suspended: a suspend was requested; a checkpoint was written.
        """
        done = {line["path"]: line for line in _lines(file)}
        left = [sample for sample in self.truth.samples if sample.path not in done]
        total, started, reported = len(self.truth.samples), time.monotonic(), 0.0
        computed = 0
        with file.open("a", encoding="utf-8") as out:
            for lines in self._batches(left):
                for line in lines:
                    done[line["path"]] = line
                    out.write(json.dumps(line) + "\n")
                out.flush()
                computed += len(lines)
                spent = time.monotonic() - started
                if spent - reported >= REPORT_EVERY_S or len(done) == total:
                    reported = spent
                    rate = computed / spent
                    eta_s = (total - len(done)) / rate
                    self.run.report(len(done), progress=0.95 * len(done) / total, eta_s=eta_s, images_per_s=rate)
                if self._leaves(len(done), file):
                    break
        return [done[sample.path] for sample in self.truth.samples if sample.path in done]

    def _leaves(self, step: int, file: Path) -> bool:
        """Whether to stop predicting and evaluate what is there."""
        command = self.run.requested()
        while command == "pause":
            time.sleep(0.2)
            command = self.run.requested()
        if command == "suspend":
            self.run.checkpoint(step, file)
            raise Suspended
        return command == "finish"

    def _batches(self, samples: list[Sample]) -> Iterator[list[Line]]:
        """Yield lines of one run of the model after the other; a few threads decode images ahead."""
        waiting: deque[tuple[Sample, Future[Decoded | None]]] = deque()
        rest = iter(samples)
        with ThreadPoolExecutor(2, thread_name_prefix="decode") as pool:
            while True:
                for sample in rest:
                    waiting.append((sample, pool.submit(self._decode, sample)))
                    if len(waiting) >= 3 * self.batch:
                        break
                if not waiting:
                    return
                ready = [waiting.popleft() for _ in range(min(self.batch, len(waiting)))]
                good = [(sample, decoded) for sample, future in ready if (decoded := future.result()) is not None]
                if good:
                    yield self._predict(good)

    def _decode(self, sample: Sample) -> Decoded | None:
        try:
            image = decode.open_image(str(self.truth.image(sample)), max_pixels=10**9)
        except decode.BadImage:
            self.unreadable.append(sample.path)
            return None
        boxes = sample.looks if self.input.scope == "object" else []
        if not boxes:
            return [decode.preprocess(image, self.input)]
        return [decode.preprocess(image, self.input, box) for box in boxes]

    def _predict(self, ready: list[tuple[Sample, Decoded]]) -> list[Line]:
        started = time.perf_counter()
        pixels = np.stack([pixels for _, looks in ready for pixels, _ in looks])
        parts = [
            self.engine.run({self.input.name: pixels[start : start + self.batch]})
            for start in range(0, len(pixels), self.batch)
        ]
        outputs = parts[0]
        if len(parts) > 1:
            outputs = {name: np.concatenate([part[name] for part in parts]) for name in outputs}
        self.inference_s += time.perf_counter() - started
        placed = [(sample, placement) for sample, looks in ready for _, placement in looks]
        return self.scoring.lines(self.spec, outputs, placed, self.mapping, self.limits)


def _lines(file: Path) -> Iterator[Line]:
    """Return complete lines of an earlier attempt; one cut in the middle is dropped."""
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    whole, _, cut = text.rpartition("\n")
    if cut:
        file.write_text(whole + "\n" if whole else "", encoding="utf-8")
    yield from (json.loads(line) for line in whole.splitlines())
