"""Convert a model: make each variant, judge it on labelled images, time all of them, say which are good enough."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, cast

import numpy as np

from inference.conversion.converter import engines, sensitivity, speedups, variant_catalog
from inference.conversion.converter.build import Bench, Feeds, NotBuilt, build
from inference.conversion.converter.completed_variants import CompletedVariants
from inference.conversion.converter.progress import Progress
from inference.conversion.converter.verify import Judged, Part, agreement, differences, judged
from inference.kit.model_io import decode, openvino, tensorrt
from inference.kit.model_io.engine import OPENVINO, RUNTIME, TENSORRT
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.models import model_json
from inference.kit.prediction.predictor import Suspended
from inference.kit.samples import ground_truth, learned
from inference.kit.samples.run import Run, write
from inference.kit.speed import speed
from inference.kit.task_kinds import TASKS

COMPARED = 16  # inputs on which outputs are compared number by number
RETRIED = 0.1  # share of the nodes, the worst ones, that a variant which lost too much is made without
ROUND_S = 1.5  # of timing a variant in one round, one image at a time and in batches
SHOWN = 10
GAIN = 1.03  # what is not certainly so many times as fast as the source is not called faster
TOOLS = ("onnxruntime", "onnx", "onnxslim", "numpy", "openvino", "tensorrt")
REQUIRED = {OPENVINO: openvino.require, TENSORRT: tensorrt.require}  # by runtime: says so where it is not here


@dataclass(frozen=True)
class Options:
    """The options of a conversion, from params.json.

    Args:
        targets: names of variants.
        split: the images on which variants are judged, as an evaluation takes it.
        calibrate_on: the split for calibration; "" takes all that no variant is evaluated on.
        looks: how many inputs of the model, about pictures, that are.
        max_loss: by how much the figure may be lower than that of the source.
    """

    targets: tuple[str, ...]
    split: str
    calibrate_on: str
    looks: int
    method: str
    max_loss: float

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Options:
        return cls(
            targets=tuple(params["targets"]),
            split=str(params.get("split") or ""),
            calibrate_on=str(params.get("calibrate_on") or ""),
            looks=int(params["looks"]),
            method=str(params["method"]),
            max_loss=float(params["max_loss"]),
        )


class Conversion:
    """One model on its way to its variants."""

    def __init__(self, run: Run) -> None:
        self.run, self.options, self.completed = run, Options.from_params(run.params), CompletedVariants(run)
        self.spec: ModelSpec = model_json.load(run.model)
        self.metric = TASKS[self.spec.task].pages.headline[0]
        self.work = run.outputs / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.progress = Progress(run, (variant_catalog.SOURCE, *self.options.targets))
        self.bench = Bench(run.model / "model.onnx", self.work, self._calibration, self.options.method)
        self.bench.on_sample = self.progress.calibrating
        self.source: Judged | None = None

    def run_all(self) -> dict[str, Any]:
        """Create the missing variants; returns the content of outputs/conversion.json.

        Raises:
            Unfit: model and data do not belong together, or the data has no such figure.
            Suspended: a suspend was requested; the variants that are done are kept.
        """
        self.completed.restore()
        for name in self.options.targets:
            if variant_catalog.TARGETS[name].needs_card and not engines.fits(self.completed.folder(name)):
                self.completed.forget(name)  # an earlier attempt had another card
        for name in self.options.targets:
            if self.completed.row(name) is not None:
                self._describe(name, self.completed.folder(name))
        names = (variant_catalog.SOURCE, *self.options.targets)
        for index, name in enumerate(names):
            if self.completed.row(name) is None:
                began = time.monotonic()
                part = self._create_part(name, self.progress.remaining_s(index))
                row = self._source(part) if name == variant_catalog.SOURCE else self._target(name, part)
                row |= {"seconds": round(time.monotonic() - began, 1)}
                self.completed.finish(name, row)
                self._print_result(row)
            self.progress.finished(name, (self.completed.row(name) or {}).get("seconds"))
            self._write(names)
            self._check_requests()
        return self._write(names, self._speeds(names))

    def _create_part(self, name: str, rest_s: float | None) -> Part:
        folder = self.completed.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        fields = {side: getattr(self.run, side) for side in self.run.__dataclass_fields__}
        return Part(**fields | {"outputs": folder, "resume_from": None}, rest_s=rest_s)

    def _source(self, part: Part) -> dict[str, Any]:
        print(f"The model as it is, judged on {self.options.split or 'all images'}:", flush=True)
        self.source = judged(part)
        value = self._value(self.source)
        if value is None:
            raise ground_truth.Unfit(
                f"These images cannot tell {self.metric}, so no loss could be said. Choose another split."
            )
        return self._row(variant_catalog.SOURCE, self.source, self.run.model / "model.onnx")

    def _reference(self) -> Judged:
        """What the source answered; of an earlier attempt, from what it kept."""
        if self.source is None:
            folder = self.completed.folder(variant_catalog.SOURCE)
            lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
            row = self.completed.row(variant_catalog.SOURCE) or {}
            self.source = Judged({"summary": row["summary"]}, {line["path"]: line for line in lines})
        return self.source

    def _target(self, name: str, part: Part) -> dict[str, Any]:
        print(f"Making {variant_catalog.TARGETS[name].label}.", flush=True)
        self.progress.converting(name)
        folder = part.outputs
        try:
            if runtime := variant_catalog.TARGETS[name].runtime:
                REQUIRED[runtime]()
            build(name, self.bench, folder / "model.onnx")
            engine_fields = (
                engines.build_engine(name, self.bench, folder) if variant_catalog.TARGETS[name].needs_card else {}
            )
            row = self._check_variant(name, part) | engine_fields
            if engine_fields:
                row["size_bytes"] = (folder / engine_fields["engine"]["file"]).stat().st_size
            if row["state"] == variant_catalog.REFUSED and variant_catalog.TARGETS[name].calibrated:
                row = self._once_more(name, part, row)
        except (NotBuilt, openvino.NotInstalled, tensorrt.NotUsable) as exc:
            return {"target": name, "state": variant_catalog.FAILED, "error": str(exc)}
        return row | ({"looks": self.bench.count} if variant_catalog.TARGETS[name].calibrated else {})

    def _check_variant(self, name: str, part: Part) -> dict[str, Any]:
        """Evaluate the variant in the folder of `part`.

        Raises:
            NotBuilt: it does not run.
        """
        folder, expected = part.outputs, self._reference()
        self._describe(name, folder)
        own = Part(**{side: getattr(part, side) for side in part.__dataclass_fields__} | {"model": folder})
        (folder / "predictions.jsonl").unlink(missing_ok=True)
        try:
            result = judged(own)
            apart = differences(
                self.run.model / "model.onnx", folder / "model.onnx", self._comparison_feeds(), threads=self.run.threads
            )
        except (Suspended, ground_truth.Unfit, MemoryError):
            raise
        except Exception as exc:  # ONNX Runtime raises what it meets: a variant may not load or not run here
            raise NotBuilt(f"{type(exc).__name__}: {exc}"[:300]) from exc
        row = self._row(name, result, folder / "model.onnx")
        loss = cast(float, self._value(expected)) - (row["value"] if row["value"] is not None else 0.0)
        return row | {
            "loss": round(loss, 6),
            "state": variant_catalog.ACCEPTED if loss <= self.options.max_loss + 1e-9 else variant_catalog.REFUSED,
            "agreement": agreement(self.spec, expected, result),
            "differences": apart,
        }

    def _describe(self, name: str, folder: Path) -> None:
        """Write the description of the source next to a variant, with its runtime."""
        document = json.loads((self.run.model / "model.json").read_bytes())
        document.pop(RUNTIME, None)
        if runtime := variant_catalog.TARGETS[name].runtime:
            document[RUNTIME] = runtime
        write(folder / "model.json", json.dumps(document))

    def _once_more(self, name: str, part: Part, first: dict[str, Any]) -> dict[str, Any]:
        """Make the variant again without the nodes that suffer most; what is better of the two stays."""
        print(f"It loses {first['loss']:.4f} of {self.metric}. Looking for the nodes that suffer most.", flush=True)
        worst = sensitivity.rank_nodes(self.bench, threads=self.run.threads, on_node=self.progress.searching)
        without = [node for node, _moved in worst[: ceil(RETRIED * len(worst))]]
        listed = [{"node": node, "moved": round(moved, 5)} for node, moved in worst[:SHOWN]]
        if not without:
            return first
        before = self.work / "first"
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(part.outputs, before)
        try:
            self.bench.quantize(part.outputs / "model.onnx", without=without)
            second = self._check_variant(name, part) | {"without": without[: 5 * SHOWN], "sensitive": listed}
            if second["loss"] < first["loss"]:
                return second
        except (Suspended, MemoryError):
            raise
        except Exception as exc:  # noqa: BLE001  the tools raise what they meet: the first one stays
            print(f"Without them it cannot be made: {exc}", flush=True)
        shutil.rmtree(part.outputs)
        shutil.copytree(before, part.outputs)  # what it answered goes with it
        return first | {"sensitive": listed}

    def _row(self, name: str, result: Judged, model: Path) -> dict[str, Any]:
        classes = [
            {key: entry[key] for key in ("id", "name", "truths", self.metric, "ap", "f1") if key in entry}
            for entry in result.evaluation.get("classes", [])
        ]
        return {
            "target": name,
            "state": variant_catalog.ACCEPTED,
            "value": self._value(result),
            "images": len(result.lines),
            "summary": {key: value for key, value in result.evaluation["summary"].items() if value is not None},
            "classes": classes,
            "size_bytes": model.stat().st_size,
        }

    def _value(self, result: Judged) -> float | None:
        value = result.evaluation["summary"].get(self.metric)
        return None if value is None else float(value)

    def _speeds(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Measure how fast each variant is here, in rounds until its speed-up over the source is certain.

        The figures are those of the best round, so that a busy moment hits none alone. `faster` and `more` (one image
        at a time, and in batches) are given only where their interval is narrow.
        """
        print("Measuring how fast each answers here.", flush=True)
        measured = [name for name in names if (self.completed.row(name) or {}).get("state") != variant_catalog.FAILED]
        rounds: list[dict[str, dict[str, Any]]] = []
        while not speedups.is_enough(len(rounds), [entry for pair in _faster(rounds).values() for entry in pair]):
            rounds.append({})
            for name in measured:
                self.progress.measuring(len(rounds) - 1, len(rounds[-1]), len(measured))
                folder = self.run.model if name == variant_catalog.SOURCE else self.completed.folder(name)
                rounds[-1][name] = speed.measured(folder, threads=self.run.threads, longest_s=ROUND_S)
                self._check_requests()
        faster = _faster(rounds)
        best = {
            name: min((entry[name] for entry in rounds), key=lambda figures: figures["p50_ms"]) for name in measured
        }
        return {name: figures | _certain_speedups(*faster.get(name, (None, None))) for name, figures in best.items()}

    def _check_requests(self) -> None:
        """Raise Suspended if a suspend was requested; wait while the job is paused."""
        command = self.run.requested()
        while command == "pause":
            time.sleep(0.2)
            command = self.run.requested()
        if command == "suspend":
            raise Suspended

    def _write(self, names: Sequence[str], speeds: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        rows = [row | {"speed": (speeds or {}).get(row["target"])} for row in map(self.completed.row, names) if row]
        variants = [row for row in rows if row["target"] != variant_catalog.SOURCE]
        good = [row for row in variants if row["state"] == variant_catalog.ACCEPTED and _is_faster(row["speed"])]
        looks = max((row.get("looks", 0) for row in rows), default=0)
        fastest = min(good, key=lambda row: row["speed"]["p50_ms"], default=None)
        document = {
            "format": 1,
            "task": self.spec.task,
            "metric": self.metric,
            "split": self.options.split,
            "max_loss": self.options.max_loss,
            "calibration": {"looks": looks, "split": self.options.calibrate_on, "method": self.options.method},
            "tools": {name: version for name in TOOLS if (version := _version(name))},
            "rows": rows,
            "fastest": fastest["target"] if fastest else None,
            "complete": speeds is not None,
        }
        write(self.run.outputs / "conversion.json", json.dumps(document))
        return document

    def _print_result(self, row: Mapping[str, Any]) -> None:
        if row["state"] == variant_catalog.FAILED:
            print(f"It cannot be made: {row['error']}", flush=True)
        elif row["target"] != variant_catalog.SOURCE:
            verdict = "accepted" if row["state"] == variant_catalog.ACCEPTED else "refused"
            print(
                f"{self.metric} {row['value']:.4f}, loss {row['loss']:.4f} ({verdict}), "
                f"agreement {row['agreement']:.4f}, {row['size_bytes']} bytes",
                flush=True,
            )

    def _comparison_feeds(self) -> list[Feeds]:
        """Return some inputs of images on which variants are evaluated."""
        return list(islice(self._feeds(self._samples(self.options.split)), COMPARED))

    def _calibration(self) -> Iterator[Feeds]:
        """Yield the inputs of images for calibration, which no variant is evaluated on if there are others."""
        judged_on = {sample.path for sample in self._samples(self.options.split)}
        pool = self._samples(self.options.calibrate_on)
        apart = [sample for sample in pool if sample.path not in judged_on] or pool
        order = np.random.default_rng(0).permutation(len(apart))
        yield from islice(self._feeds([apart[index] for index in order]), self.options.looks)

    def _samples(self, split: str) -> list[ground_truth.Sample]:
        return ground_truth.read(self.run.dataset, split, self._learned()).samples

    def _learned(self) -> set[str]:
        of = self.run.params.get("learned")
        division = {name: value for name, value in of.items() if name != "dir"} if of else {}
        return learned.keys(Path(of["dir"]), **division) if of else set()

    def _feeds(self, samples: Sequence[ground_truth.Sample]) -> Iterator[Feeds]:
        input_spec = cast(InputSpec, self.spec.input)
        for sample in samples:
            try:
                image = decode.open_image(str(self.run.dataset / "images" / sample.path), max_pixels=10**9)
            except decode.BadImage:
                continue
            for pixels, _placement in decode.looks(
                image, input_spec, sample.looks if input_spec.scope == "object" else ()
            ):
                yield {input_spec.name: pixels[None]}


def _faster(
    rounds: Sequence[Mapping[str, Mapping[str, Any]]],
) -> dict[str, tuple[speedups.Speedup | None, speedups.Speedup | None]]:
    """Return the speed-up of each variant over the source in the rounds: one image at a time, and in batches."""
    names = [name for name in (rounds[0] if rounds else ()) if name != variant_catalog.SOURCE]
    return {
        name: (
            speedups.from_ratios(
                [round_[variant_catalog.SOURCE]["p50_ms"] / round_[name]["p50_ms"] for round_ in rounds]
            ),
            speedups.from_ratios(
                [round_[name]["images_per_s"] / round_[variant_catalog.SOURCE]["images_per_s"] for round_ in rounds]
            ),
        )
        for name in names
    }


def _certain_speedups(single: speedups.Speedup | None, batches: speedups.Speedup | None) -> dict[str, float]:
    """Return the speed-ups that are certain, with the ends of their intervals."""
    return {
        key: round(value, 4)
        for name, speedup in (("faster", single), ("more", batches))
        if speedup is not None and speedup.is_narrow
        for key, value in ((name, speedup.mean), (f"{name}_low", speedup.low), (f"{name}_high", speedup.high))
    }


def _is_faster(speed_of: Mapping[str, Any] | None) -> bool:
    return bool(speed_of) and (speed_of or {}).get("faster_low", 0.0) >= GAIN


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
