"""Check a variant against the model it was made of: figures on labelled images, agreement, largest differences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from inference.conversion.converter.build import Feeds
from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.contracts.served_task import Line, Scoring
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.spec import ModelSpec
from inference.kit.samples.run import Run
from inference.kit.task_kinds import TASKS


@dataclass(frozen=True)
class Part(Run):
    """The evaluation of one variant, which is a part of a conversion; `rest_s` is what follows it, None: not known."""

    rest_s: float | None = None

    def report(self, step: int, **values: float | str) -> None:
        """Append the phase and its counter; other values of an evaluation are in the table of variants."""
        fields: dict[str, float | str] = {
            name: values[name] for name in ("phase", "phase_done", "phase_total") if name in values
        }
        eta_s = values.get("eta_s")
        if isinstance(eta_s, float) and self.rest_s is not None:
            fields["eta_s"] = round(eta_s + self.rest_s, 1)
        super().report(step, **fields)

    def checkpoint(
        self,
        step: int,
        copied: Mapping[str, Path | str],
        linked: Mapping[str, Path] | None = None,
        *,
        known_digests: dict[str, str] | None = None,
        limit: int = 0,
    ) -> Path:
        """Store nothing: a conversion keeps its completed variants, and the current one is evaluated again."""
        return self.checkpoints


@dataclass(frozen=True)
class Judged:
    """What a variant answered, and what came of judging it."""

    evaluation: Mapping[str, Any]
    lines: Mapping[str, Line]  # by path


def judged(part: Part) -> Judged:
    """Evaluate the model in `part.model`.

    Raises:
        Unfit, Suspended: see `evaluate`.
    """
    evaluation = evaluate(part)
    with (part.outputs / "predictions.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return Judged(evaluation, {line["path"]: line for line in lines})


def agreement(spec: ModelSpec, first: Judged, second: Judged) -> float:
    """How alike two variants answered on the mean of the images, from 0 to 1; see `Scoring.agreement`."""
    scoring = cast(Scoring, import_module(TASKS[spec.task].scoring))
    threshold = spec.decode.score_threshold
    shared = first.lines.keys() & second.lines.keys()
    each = [scoring.agreement(first.lines[path], second.lines[path], threshold) for path in shared]
    return round(sum(each) / len(each), 6) if each else 0.0


def differences(
    source: Path, variant: Path, feeds: Sequence[Feeds], *, threads: int
) -> dict[str, dict[str, float | None]]:
    """Compute for each output the largest and mean difference of two variants over some inputs, in the output's units.

    `range` is how far apart the lowest and highest number of the source are there. None: not a finite number.
    """
    source_engine, variant_engine = Engine(source, threads=threads), Engine(variant, threads=threads)
    largest: dict[str, float] = {}
    sums: dict[str, list[float]] = {}
    ends: dict[str, tuple[float, float]] = {}
    for feed in feeds:
        expected, actual = source_engine.run(feed), variant_engine.run(feed)
        for name, values in expected.items():
            if values.size == 0 or values.shape != actual[name].shape:
                continue
            reference = np.asarray(values, np.float64)
            distance = np.abs(reference - np.asarray(actual[name], np.float64))
            low, high = ends.get(name, (np.inf, -np.inf))
            largest[name] = float(np.maximum(largest.get(name, 0.0), distance.max()))  # keeps what is not a number
            sums.setdefault(name, []).append(float(distance.mean()))
            ends[name] = (min(low, float(reference.min())), max(high, float(reference.max())))
    return {
        name: {
            "largest": _finite(largest[name]),
            "mean": _finite(float(np.mean(sums[name]))),
            "range": _finite(ends[name][1] - ends[name][0]),
        }
        for name in largest
    }


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
