"""How much worse a model does on altered copies of some of the images, see `altered`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from inference.evaluation.evaluator import altered
from inference.kit.contracts.served_task import CLASSES, Line, Scoring
from inference.kit.prediction.predictor import Predictor
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.task_kinds import TASKS

FILE = "robustness.jsonl"


def select_samples(samples: list[Sample], count: int) -> list[Sample]:
    """Return at most `count` images, spread evenly over all."""
    if len(samples) <= count:
        return samples
    return [samples[index * len(samples) // count] for index in range(count)]


def passes(truth: Truth) -> list[tuple[str, int]]:
    """The kinds and strengths of the copies that a model is evaluated on."""
    kinds = altered.WHOLE if truth.task == CLASSES else altered.ANYWHERE
    return [(kind, strength) for kind in kinds for strength in altered.STRENGTHS]


def judge(
    predictor: Predictor, scoring: Scoring, lines: list[Line], *, task: str, count: int, outputs: Path
) -> dict[str, Any] | None:
    """Return the main metric on some images as they are, and on each of their altered copies.

    What was judged before an attempt was suspended is not judged again; a "finish" leaves out what is missing.

    Raises:
        Suspended: a suspend was requested.
    """
    data = predictor.truth
    read = {line["path"] for line in lines}
    part = replace(data, samples=select_samples([sample for sample in data.samples if sample.path in read], count))
    paths = {sample.path for sample in part.samples}
    clean, _images = scoring.evaluate(part, [line for line in lines if line["path"] in paths])
    figure = next((key for key in TASKS[task].pages.headline if clean["summary"].get(key) is not None), None)
    if figure is None:
        return None
    file = outputs / FILE
    done = _done(file)
    wanted = passes(data)
    predictor.truth = part
    predictor.phase, predictor.later, predictor.step = "altered", 0, len(lines)
    predictor.whole = len(wanted) * len(part.samples)
    predictor.kept[file.name] = file
    try:
        for number, (kind, strength) in enumerate(wanted):
            if (kind, strength) in done:
                continue
            predictor.change = _change(kind, strength)
            predictor.before = number * len(part.samples)
            value = _value(predictor, scoring, outputs / f"altered-{kind}-{strength}.jsonl", figure)
            if predictor.run.requested() == "finish":
                break
            done[kind, strength] = value
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"kind": kind, "strength": strength, "value": value}) + "\n")
    finally:
        predictor.truth, predictor.change = data, None
    rows = [{"kind": kind, "strength": strength, "value": done[kind, strength]} for kind, strength in wanted
            if (kind, strength) in done]  # fmt: skip
    return {"images": len(part.samples), "figure": figure, "clean": clean["summary"][figure], "rows": rows}


def _value(predictor: Predictor, scoring: Scoring, file: Path, figure: str) -> float | None:
    lines = predictor.all(file)
    value = scoring.evaluate(predictor.truth, lines)[0]["summary"].get(figure) if lines else None
    file.unlink(missing_ok=True)
    return None if value is None else float(value)


def _change(kind: str, strength: int) -> Callable[[Image.Image, Sample], Image.Image]:
    return lambda image, sample: altered.copy(image, kind, strength, seed=sample.id)


def _done(file: Path) -> dict[tuple[str, int], float | None]:
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {(str(row["kind"]), int(row["strength"])): row["value"] for row in rows}
