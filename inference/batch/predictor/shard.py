"""What one machine of a job does: the chunks whose number is its own modulo the number of machines.

All write into the folder of one job. The first machine says how far all are, and writes the summary once every chunk
is there; the others end when it has.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inference.batch.predictor.chunks import FOLDER, PREVIEW, SIZE, Chunks, Line
from inference.batch.predictor.predictions import Predictor
from inference.kit.contracts.served_task import SHAPES
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import TENSOR
from inference.kit.models import composed, model_json
from inference.kit.prediction import samples
from inference.kit.prediction.predictor import Suspended
from inference.kit.samples.run import Run, write
from inference.kit.task_kinds import TASKS

REPORT_EVERY_S = 1.0
CHECKPOINT_EVERY_S = 60.0
LOOK_EVERY_S = 0.2  # at what the other machines did, and at requests while nothing is to be done
BATCH = 8
MAX_NAMED = 1000  # pictures without an answer, in the summary; the chunks name all
SUMMARY = "summary.json"


class Part:
    """One machine's part of a prediction.

    Raises:
        NoPictures: there is nothing to answer.
        BadModel: the model's description cannot be understood.
    """

    def __init__(self, run: Run, env: Mapping[str, str] = os.environ) -> None:
        self.run = run
        self.rank, self.ranks = int(env.get("AIP_NODE_RANK", "0")), max(1, int(env.get("AIP_NODES", "1")))
        self.earlier = [Path(folder) for folder in json.loads(env.get("AIP_EARLIER", "[]"))]
        self.paths = samples.list_paths(run, env.get("AIP_SAMPLES", ""))
        self.pictures = samples.Pictures(Path(env["AIP_IMAGES_DIR"]))
        self.spec = model_json.load(run.model)
        if self.spec.task == TENSOR or self.spec.input is None:
            raise model_json.BadModel("This model came without model.json, so its answers cannot be understood.")
        placed = TASKS[self.spec.task].answer.draft == SHAPES
        self.chunks = Chunks(run.outputs / FOLDER, len(self.paths), placed=placed)
        self.begun = self.reported = self.checkpointed = time.monotonic()
        self.computed = 0
        self.pending = 0  # predicted images of the chunk that is not complete yet
        self.speed: dict[str, Any] = {}

    def run_all(self) -> None:
        """Predict the missing chunks of this rank, then wait for those of the others.

        Raises:
            Suspended: a suspend was requested.
        """
        own = range(self.rank, self.chunks.count, self.ranks)
        restored = sum(self.chunks.take_over(folder, own) for folder in self.earlier)
        if restored:
            print(f"Going on after {restored} chunks that are done.", flush=True)
        missing = [number for number in own if self.chunks.head(number) is None]
        is_running = self._answer(missing) if missing else True
        while is_running and not self.chunks.is_whole and not self._is_over():
            self._report_progress()
            is_running = not self._should_stop()
            time.sleep(LOOK_EVERY_S)
        if self.rank == 0:
            self._end()
        while self.rank and is_running and not self._is_over():  # who leaves first would take the others along
            is_running = not self._should_stop()
            time.sleep(LOOK_EVERY_S)

    def _answer(self, missing: list[int]) -> bool:
        """Predict these chunks; returns whether all are done, False if a finish was requested."""
        predictor = self._create_predictor()
        print(f"Answering {len(missing)} chunks of {SIZE} on {predictor.engine.provider}.", flush=True)
        self.begun = time.monotonic()
        lines: list[Line] = []
        waiting = iter(missing)
        number, finishes = next(waiting), False
        for predicted in predictor.lines(self._samples(missing)):
            lines += predicted
            self.computed += len(predicted)
            self._preview(number, lines)
            is_complete = False
            while number >= 0 and len(lines) >= (need := len(self.chunks.places(number))):
                self.chunks.store(number, lines[:need])
                lines, number, is_complete = lines[need:], next(waiting, -1), True
            self.pending = len(lines)
            self._report_progress()
            finishes = self._should_stop()
            if finishes and is_complete:  # the chunk at hand is finished first
                break
        return not finishes

    def _preview(self, number: int, lines: list[Line]) -> None:
        """Write the first predictions before their chunk is complete, so that the page has something to show."""
        if self.rank == 0 and number == 0 and len(lines) <= SIZE:
            write(self.run.outputs / PREVIEW, "".join(json.dumps(line) + "\n" for line in lines))

    def _samples(self, numbers: list[int]) -> Iterator[tuple[int, str]]:
        for number in numbers:
            for index in self.chunks.places(number):
                yield index, self.paths[index]

    def _create_predictor(self) -> Predictor:
        params = self.run.params
        engine = composed.load(self.run.model, self.spec, threads=self.run.threads)
        values = {name: params[name] for name in ("score_threshold", "max_detections") if params.get(name) is not None}
        batch, pixels = int(params.get("batch") or BATCH), int(params.get("max_pixels") or 50_000_000)
        self.speed = {"provider": engine.provider, "batch": batch if engine.batches else 1}
        threads = max(2, self.run.threads)
        requested = Requested.from_values(values)
        return Predictor(self.spec, engine, self.pictures, requested, batch=batch, max_pixels=pixels, threads=threads)

    def _should_stop(self) -> bool:
        """Return whether to stop here and keep the results so far."""
        command = self.run.requested()
        while command == "pause":
            time.sleep(LOOK_EVERY_S)
            command = self.run.requested()
        if command == "suspend":
            if self.rank == 0:
                self._checkpoint()
            raise Suspended
        return command.startswith("finish")

    def _is_over(self) -> bool:
        """Whether the first machine has written how all of it ended."""
        if self.rank == 0:
            return False
        try:
            return bool(json.loads((self.run.outputs / SUMMARY).read_text())["ended"])
        except (OSError, ValueError, KeyError):
            return False

    def _report_progress(self) -> None:
        """Report the progress of all ranks, now and then."""
        now = time.monotonic()
        if self.rank or now - self.reported < REPORT_EVERY_S:
            return
        self.reported = now
        done = self._summarize(ended=False)["done"]
        spent = max(now - self.begun, 0.001)
        rate = self.ranks * self.computed / spent
        done = min(done + self.ranks * self.pending, len(self.paths))
        eta = {"eta_s": (len(self.paths) - done) / rate} if rate else {}
        counted = {"phase_done": done, "phase_total": len(self.paths)}
        self.run.report(done, phase="predicting", **counted, images_per_s=rate, **eta)
        if now - self.checkpointed >= CHECKPOINT_EVERY_S:
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Say that there is something to go on from; the chunks themselves stay where they are."""
        self.checkpointed = time.monotonic()
        done = sum(head.pictures for head in self.chunks.heads())
        self.run.checkpoint(done, {"state.json": json.dumps({"done": done, "total": len(self.paths)})}, limit=2)

    def _summarize(self, *, ended: bool) -> dict[str, Any]:
        heads, classes = self.chunks.heads(), Counter[str]()
        for head in heads:
            classes.update(head.classes)
        done = sum(head.pictures for head in heads)
        broken = [pair for head in heads for pair in head.broken]
        summary = {
            "format": 1,
            "total": len(self.paths),
            "done": done,
            "broken": len(broken),
            "left_out": [{"path": path, "code": code} for path, code in broken[:MAX_NAMED]],
            "predictions": sum(head.predictions for head in heads),
            "classes": [{"name": name, "count": count} for name, count in classes.most_common(1000)],
            "images_per_s": round(self.computed / max(time.monotonic() - self.begun, 0.001), 2),
            "complete": done == len(self.paths),
            "ended": ended,
            **self.speed,
        }
        write(self.run.outputs / SUMMARY, json.dumps(summary))
        return summary

    def _end(self) -> None:
        (self.run.outputs / PREVIEW).unlink(missing_ok=True)
        summary = self._summarize(ended=True)
        figures = {name: float(summary[name]) for name in ("predictions", "broken")}
        write(self.run.outputs / "metrics.json", json.dumps(figures))
        self.run.report(summary["done"], phase="predicting", phase_done=summary["done"], phase_total=len(self.paths))
        print(f"{summary['done']} pictures, {summary['predictions']} predictions.", flush=True)
        if summary["broken"]:
            print(f"{summary['broken']} pictures cannot be read and were left out.", flush=True)
