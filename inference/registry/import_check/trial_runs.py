"""Run the model on the pictures in each way, read its answers as a service reads them, and choose the best ways."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec, ModelSpec
from inference.kit.models import model_json
from inference.kit.task_kinds import TASKS
from inference.registry.import_check import plausibility
from inference.registry.import_check.samples import Picture

MIN_SHOWN, MAX_SHOWN = 3, 8
MAX_PREDICTIONS, MAX_MASKS = 50, 10  # of a picture that are kept
MAX_MASK_BYTES = 200_000  # of the masks of a picture
MAX_OUTPUT_BYTES = 1 << 30  # of one run of the model
MAX_FIELD = 2000  # characters of a field of an answer that is kept, masks besides
Answers = list[list[dict[str, Any]]]  # of each picture
Arrays = Mapping[str, np.ndarray]


@dataclass
class Variant:
    """One way to read the model: the place of it in the params, its model.json, and what came of it."""

    number: int
    described: dict[str, Any]
    spec: ModelSpec | None = None
    answers: Answers = field(default_factory=list)
    score: float = 0.0
    sure: float = 0.0
    why: str = ""  # it fell out

    @property
    def input_key(self) -> tuple[Any, ...]:
        """Return what the model input depends on; ways with the same value share runs."""
        input_fields = self.described["input"]
        numbers = (tuple(input_fields["mean"]), tuple(input_fields["std"]), input_fields.get("order"))
        return (
            input_fields["resize"],
            *numbers,
            input_fields["width"],
            input_fields["height"],
            input_fields["name"],
            input_fields["channels"],
        )


def run_trials(
    model: Path,
    pictures: Sequence[Picture],
    params: Mapping[str, Any],
    *,
    threads: int,
    report: Callable[[str, int, int], None] = lambda _phase, _done, _total: None,
) -> dict[str, Any]:
    """Return what the page shows: images, the best variants with their predictions, and why others are excluded.

    Args:
        params: `kinds`, descriptions as of model.json, and `ways`: place of a kind, mean, std, resize, order;
            `seconds` after which nothing new is begun.
        report: gets the phase, and how many of how many variants were run.
    """
    began = time.monotonic()
    until = began + params["seconds"]
    variants = [
        Variant(number, _description(params["kinds"], variant)) for number, variant in enumerate(params["ways"])
    ]
    for variant in variants:
        try:
            variant.spec = model_json.parse(variant.described)
        except model_json.BadModel as refused:
            _exclude(variant, "unreadable", refused)
    report("loading", 0, 0)
    engine = Engine(model, threads=threads)
    valid = [variant for variant in variants if not variant.why]
    done = 0
    for same in _groups(valid):
        report("scoring", done, len(valid))
        _run_group(engine, same, pictures, until)
        done += len(same)
    report("scoring", done, len(valid))
    for variant in variants:
        if not variant.why:
            variant.score, variant.sure = plausibility.rate(variant.spec, variant.answers, pictures)
    shown = _best(variants)
    return {
        "pictures": [picture.to_json() for picture in pictures],
        "with_truth": any(picture.has_ground_truth for picture in pictures),
        "best": [
            {
                "n": variant.number,
                "score": round(variant.score, 4),
                "sure": round(variant.sure, 4),
                "answers": [
                    [_without_large_fields(prediction) for prediction in _limit(row)] for row in variant.answers
                ],
            }
            for variant in shown
        ],
        "fallen": [{"n": variant.number, "code": variant.why} for variant in variants if variant not in shown],
        "tried": sum(variant.why not in ("unreadable", "time") for variant in variants),
        "seconds": round(time.monotonic() - began, 1),
    }


def _description(kinds: Sequence[Mapping[str, Any]], variant: Mapping[str, Any]) -> dict[str, Any]:
    kind = kinds[variant["kind"]]
    names = ("mean", "std", "resize", "order")
    return {**kind, "input": {**kind["input"], **{name: variant[name] for name in names if name in variant}}}


def _groups(variants: Sequence[Variant]) -> Iterator[list[Variant]]:
    groups: dict[tuple[Any, ...], list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.input_key, []).append(variant)
    yield from groups.values()


def _run_group(engine: Engine, variants: list[Variant], pictures: Sequence[Picture], until: float) -> None:
    """Run variants that have the same input; a variant that fails is excluded alone."""
    for picture in pictures:
        remaining = [variant for variant in variants if not variant.why]
        if not remaining:
            return
        if time.monotonic() > until:
            for variant in remaining:
                _exclude(variant, "time")
            return
        try:
            outputs, placement = _run(engine, remaining[0], picture)
        except Exception as error:  # noqa: BLE001  whatever somebody's graph does on these numbers
            for variant in remaining:
                _exclude(variant, "does_not_run", error)
            return
        for variant in remaining:
            _read(variant, outputs, placement)


def _run(engine: Engine, variant: Variant, picture: Picture) -> tuple[Arrays, decode.Placement]:
    input_spec = _input(variant)
    sample, placement = decode.preprocess(picture.image, input_spec)
    first = next(end for end in engine.inputs if end.name == input_spec.name).shape[0]
    batch = np.repeat(sample[None], first if first > 0 else 1, axis=0)
    outputs = engine.run({input_spec.name: batch})
    if sum(array.nbytes for array in outputs.values()) > MAX_OUTPUT_BYTES:
        raise ValueError("its outputs are larger than a gigabyte")
    return outputs, placement


def _input(variant: Variant) -> InputSpec:
    if variant.spec is None or variant.spec.input is None:
        raise ValueError("a way without a described input")
    return variant.spec.input


def _read(variant: Variant, outputs: Arrays, placement: decode.Placement) -> None:
    if variant.spec is None:
        return
    try:
        with np.errstate(all="ignore"):
            (answers,) = TASKS[variant.spec.task].answer.read(variant.spec, outputs, [placement], Requested())
    except Exception as error:  # noqa: BLE001  shapes that say one thing and arrays that are another
        _exclude(variant, "unreadable", error)
        return
    if any(not plausibility.is_number(prediction.get("score")) for prediction in answers):
        _exclude(variant, "no_numbers")
        return
    variant.answers.append(answers)


def _exclude(variant: Variant, code: str, error: Exception | None = None) -> None:
    variant.why = code
    if error is not None:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        sys.stdout.write(f"Way {variant.number} falls out, {code}: {reason}\n")


def _best(variants: Sequence[Variant]) -> list[Variant]:
    """Return the best variants, best first; of variants with equal predictions the first, which is the more usual one.

    Some that found nothing stand behind fewer than MIN_SHOWN others: one sees what a wrong way looks like. Where no
    way found anything there is none to choose.
    """
    ranked = sorted(
        (variant for variant in variants if not variant.why),
        key=lambda variant: (-variant.score, -variant.sure, variant.number),
    )
    shown: list[Variant] = []
    any_predictions = any(any(variant.answers) for variant in ranked)
    for variant in ranked:
        if any(variant.answers) and any(_is_equal(variant, other) for other in shown):
            variant.why = "same"
        elif len(shown) == MAX_SHOWN:
            variant.why = "worse"
        elif variant.score <= 0 and (len(shown) >= MIN_SHOWN or not any_predictions):
            variant.why = "nothing"
        else:
            shown.append(variant)
    return shown


def _is_equal(variant: Variant, other: Variant) -> bool:
    return variant.described["task"] == other.described["task"] and variant.answers == other.answers


def _limit(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first predictions of an image, with masks only as far as they are few and small."""
    shown, budget = [], MAX_MASK_BYTES
    for index, answer in enumerate(answers[:MAX_PREDICTIONS]):
        if mask := answer.get("mask"):
            budget -= len(mask["counts"])
            if budget < 0 or index >= MAX_MASKS:
                answer = {name: value for name, value in answer.items() if name != "mask"}
        shown.append(answer)
    return shown


def _without_large_fields(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a prediction without the fields that are too large to show."""
    return {name: value for name, value in answer.items() if name == "mask" or len(json.dumps(value)) <= MAX_FIELD}
