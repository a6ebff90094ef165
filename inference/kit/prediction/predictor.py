"""Run a model over a split and store every answer, one JSON line per image."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
from PIL import Image

from inference.kit.contracts.served_task import Arrays, Joining, Line, Scoring
from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.spec import DecodeSpec, InputSpec, ModelSpec
from inference.kit.samples import facts
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.samples.run import Run
from inference.kit.task_kinds import TASKS
from training.presets.tiling.grid import grid

REPORT_EVERY_S = 0.5
COMPUTING, COMPUTING_S = 0.05, 1.0  # what computing metrics takes: a share of the predicting, and seconds
AHEAD = 3  # batches of looks that are decoded before they are needed
Looks = Iterator[tuple[decode.Floats, decode.Placement]]  # at one image


class Suspended(Exception):
    """A suspend was requested; what was done so far is in a checkpoint."""


class Predictor:
    """One model over one split.

    Parameters read from the run: `score_threshold` (answers below are not kept),
    `iou_threshold`, `max_detections`, `batch`.
    """

    def __init__(
        self, run: Run, spec: ModelSpec, engine: Loaded, truth: Truth, scoring: Scoring, mapping: dict[int, int]
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
        self.inference_s = self.predicting_s = 0.0
        self.unreadable: list[str] = []
        self.change: Callable[[Image.Image, Sample], Image.Image] | None = None  # what is looked at instead of an image
        self.phase = "scoring"  # as reported, with the images of the phase that were done before and of all of it
        self.before, self.whole = 0, len(truth.samples)
        self.step = 0  # images of earlier phases
        self.later = 0  # images of later phases
        self.kept: dict[str, Path] = {}  # further files of a checkpoint, where they are there
        self._lights: dict[str, float] = {}

    def all(self, file: Path, *, newest: Callable[[Sequence[Line]], None] | None = None) -> list[Line]:
        """Every sample's line, in the samples' order; those already in `file` are not computed again.

        Args:
            newest: gets the lines of each run of the model.

        Raises:
            Suspended: a suspend was requested; a checkpoint was written.
        """
        done = {line["path"]: line for line in _lines(file)}
        left = [sample for sample in self.truth.samples if sample.path not in done]
        total, started, reported = len(self.truth.samples), time.monotonic() - self.run.paused_s(), 0.0
        computed = 0
        with file.open("a", encoding="utf-8") as out:
            for lines in self._batches(left):
                for line in lines:
                    line["light"] = self._lights.pop(line["path"], None)
                    done[line["path"]] = line
                    out.write(json.dumps(line) + "\n")
                out.flush()
                if newest is not None:
                    newest(lines)
                computed += len(lines)
                spent = time.monotonic() - self.run.paused_s() - started
                if spent - reported >= REPORT_EVERY_S or len(done) == total:
                    reported = spent
                    self._report(self.before + len(done), computed / spent)
                if self._leaves(len(done), file):
                    break
        self.predicting_s += time.monotonic() - self.run.paused_s() - started
        return [done[sample.path] for sample in self.truth.samples if sample.path in done]

    def _report(self, done: int, rate: float) -> None:
        """Report how many images of the phase are done; `rate` is images a second."""
        eta_s = (self.whole - done + self.later) / rate * (1 + COMPUTING) + COMPUTING_S
        counted = {"phase_done": done, "phase_total": self.whole}
        self.run.report(self.step + done, phase=self.phase, **counted, eta_s=round(eta_s, 1), images_per_s=rate)

    def report_computing(self, step: int) -> None:
        """Report that the metrics are being computed, and the seconds that this is thought to take."""
        self.run.report(step, phase="computing", eta_s=round(COMPUTING * self.predicting_s + COMPUTING_S, 1))

    def _leaves(self, step: int, file: Path) -> bool:
        """Whether to stop predicting and evaluate what is there."""
        command = self.run.requested()
        while command == "pause":
            time.sleep(0.2)
            command = self.run.requested()
        if command == "suspend":
            there = {name: path for name, path in self.kept.items() if path.exists()}
            self.run.checkpoint(step, {**there, file.name: file})
            raise Suspended
        return command == "finish"

    def _batches(self, samples: list[Sample]) -> Iterator[list[Line]]:
        """Yield lines of one run of the model after the other; a few threads decode images ahead, looks counted."""
        waiting: deque[tuple[Sample, int, Future[Looks | None]]] = deque()
        rest, ahead = iter(samples), 0
        with ThreadPoolExecutor(2, thread_name_prefix="decode") as pool:
            while True:
                while ahead < AHEAD * self.batch and (sample := next(rest, None)) is not None:
                    count = self._count(sample)
                    waiting.append((sample, count, pool.submit(self._decode, sample, count)))
                    ahead += count
                if not waiting:
                    return
                good: list[tuple[Sample, Looks]] = []
                taken = 0
                while waiting and (not taken or taken + waiting[0][1] <= self.batch):
                    sample, count, future = waiting.popleft()
                    taken += count
                    if (looks := future.result()) is not None:
                        good.append((sample, looks))
                ahead -= taken
                if good:
                    yield self._predict(good)

    def _count(self, sample: Sample) -> int:
        """Return how many inputs of the model an image needs."""
        spec = self.input
        if spec.overlap is not None:
            return len(grid(sample.width, sample.height, (spec.width, spec.height), spec.overlap))
        return max(1, len(sample.looks)) if spec.scope == "object" else 1

    def _decode(self, sample: Sample, count: int) -> Looks | None:
        """Decode the inputs of an image; where they exceed a batch, they are made on demand."""
        try:
            image = decode.open_image(str(self.truth.image(sample)), max_pixels=10**9)
        except decode.BadImage:
            self.unreadable.append(sample.path)
            return None
        if self.change is not None:
            image = self.change(image, sample)
        else:
            self._lights[sample.path] = facts.light(image)
        looks = decode.looks(image, self.input, sample.looks if self.input.scope == "object" else ())
        return looks if count > self.batch else iter(list(looks))

    def _predict(self, ready: list[tuple[Sample, Looks]]) -> list[Line]:
        if self.input.overlap is not None:
            return self._joined(ready)
        looks = ((sample, *look) for sample, own in ready for look in own)
        parts: list[Arrays] = []
        placed: list[tuple[Sample, decode.Placement]] = []
        while some := list(islice(looks, self.batch)):
            parts.append(self._run([pixels for _, pixels, _ in some]))
            placed += [(sample, placement) for sample, _, placement in some]
        outputs = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return self.scoring.lines(self.spec, outputs, placed, self.mapping, self.limits)

    def _joined(self, ready: list[tuple[Sample, Looks]]) -> list[Line]:
        """Return the lines of images that are processed in tiles; the outputs of a batch are joined before the next."""
        start = TASKS[self.spec.task].answer.joining
        if start is None:
            raise RuntimeError(f"a {self.spec.task} model with tiles was let in")
        joined: dict[int, Joining] = {}
        looks = ((index, *look) for index, (_, own) in enumerate(ready) for look in own)
        while batch := list(islice(looks, self.batch)):
            outputs = self._run([pixels for _, pixels, _ in batch])
            for index in dict.fromkeys(index for index, _, _ in batch):
                rows = [row for row, (of, _, _) in enumerate(batch) if of == index]
                placements = [batch[row][2] for row in rows]
                if index not in joined:
                    joined[index] = start(self.spec, (placements[0].width, placements[0].height))
                joined[index].add({name: array[rows] for name, array in outputs.items()}, placements)
        lines = []
        for index, (sample, _) in enumerate(ready):
            spec, complete, placement = joined.pop(index).result()
            lines += self.scoring.lines(spec, complete, [(sample, placement)], self.mapping, self.limits)
        return lines

    def _run(self, pixels: list[decode.Floats]) -> Arrays:
        batch = np.stack(pixels)
        started = time.perf_counter()
        outputs = self.engine.run({self.input.name: batch})
        self.inference_s += time.perf_counter() - started
        return outputs


def _lines(file: Path) -> Iterator[Line]:
    """Return complete lines of an earlier attempt; one cut in the middle is dropped."""
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    complete, _, cut = text.rpartition("\n")
    if cut:
        file.write_text(complete + "\n" if complete else "", encoding="utf-8")
    yield from (json.loads(line) for line in complete.splitlines())
