"""Run the model on the pictures in each way, read its answers as a service reads them, and choose the best ways."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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

LEAST_SHOWN, MOST_SHOWN = 3, 8
MOST_ANSWERS, MOST_MASKS = 50, 10  # of a picture that are kept
MOST_MASK_BYTES = 200_000  # of the masks of a picture
MOST_OUTPUT_BYTES = 1 << 30  # of one run of the model
MOST_FIELD = 2000  # characters of a field of an answer that is kept, masks besides
Answers = list[list[dict[str, Any]]]  # of each picture
Arrays = Mapping[str, np.ndarray]


@dataclass
class Way:
    """One way to read the model: the place of it in the params, its model.json, and what came of it."""

    number: int
    described: dict[str, Any]
    spec: ModelSpec | None = None
    answers: Answers = field(default_factory=list)
    score: float = 0.0
    sure: float = 0.0
    why: str = ""  # it fell out

    @property
    def seen(self) -> tuple[Any, ...]:
        """What the model is shown; ways that agree in it share its runs."""
        given = self.described["input"]
        numbers = (tuple(given["mean"]), tuple(given["std"]), given.get("order"))
        return given["resize"], *numbers, given["width"], given["height"], given["name"], given["channels"]


def tried(model: Path, pictures: Sequence[Picture], params: Mapping[str, Any], *, threads: int) -> dict[str, Any]:
    """What the page shows: pictures, the best ways with their answers, and why others fell out.

    Args:
        params: `kinds`, descriptions as of model.json, and `ways`: place of a kind, mean, std, resize, order;
            `seconds` after which nothing new is begun.
    """
    began = time.monotonic()
    until = began + params["seconds"]
    ways = [Way(number, _described(params["kinds"], way)) for number, way in enumerate(params["ways"])]
    for way in ways:
        try:
            way.spec = model_json.parse(way.described)
        except model_json.BadModel as refused:
            _out(way, "unreadable", refused)
    engine = Engine(model, threads=threads)
    for same in _groups([way for way in ways if not way.why]):
        _try(engine, same, pictures, until)
    for way in ways:
        if not way.why:
            way.score, way.sure = plausibility.judge(way.spec, way.answers, pictures)
    shown = _best(ways)
    return {
        "pictures": [picture.shown() for picture in pictures],
        "with_truth": any(picture.has_truth for picture in pictures),
        "best": [
            {
                "n": way.number,
                "score": round(way.score, 4),
                "sure": round(way.sure, 4),
                "answers": [[_kept(one) for one in _short(row)] for row in way.answers],
            }
            for way in shown
        ],
        "fallen": [{"n": way.number, "code": way.why} for way in ways if way not in shown],
        "tried": sum(way.why not in ("unreadable", "time") for way in ways),
        "seconds": round(time.monotonic() - began, 1),
    }


def _described(kinds: Sequence[Mapping[str, Any]], way: Mapping[str, Any]) -> dict[str, Any]:
    kind = kinds[way["kind"]]
    names = ("mean", "std", "resize", "order")
    return {**kind, "input": {**kind["input"], **{name: way[name] for name in names if name in way}}}


def _groups(ways: Sequence[Way]) -> Iterator[list[Way]]:
    seen: dict[tuple[Any, ...], list[Way]] = {}
    for way in ways:
        seen.setdefault(way.seen, []).append(way)
    yield from seen.values()


def _try(engine: Engine, ways: list[Way], pictures: Sequence[Picture], until: float) -> None:
    """Answers of ways that show the model the same; each falls out by itself."""
    for picture in pictures:
        left = [way for way in ways if not way.why]
        if not left:
            return
        if time.monotonic() > until:
            for way in left:
                _out(way, "time")
            return
        try:
            outputs, placement = _run(engine, left[0], picture)
        except Exception as error:  # noqa: BLE001  whatever somebody's graph does on these numbers
            for way in left:
                _out(way, "does_not_run", error)
            return
        for way in left:
            _read(way, outputs, placement)


def _run(engine: Engine, way: Way, picture: Picture) -> tuple[Arrays, decode.Placement]:
    seen = _input(way)
    sample, placement = decode.preprocess(picture.image, seen)
    first = next(end for end in engine.inputs if end.name == seen.name).shape[0]
    batch = np.repeat(sample[None], first if first > 0 else 1, axis=0)
    outputs = engine.run({seen.name: batch})
    if sum(array.nbytes for array in outputs.values()) > MOST_OUTPUT_BYTES:
        raise ValueError("its outputs are larger than a gigabyte")
    return outputs, placement


def _input(way: Way) -> InputSpec:
    if way.spec is None or way.spec.input is None:
        raise ValueError("a way without a described input")
    return way.spec.input


def _read(way: Way, outputs: Arrays, placement: decode.Placement) -> None:
    if way.spec is None:
        return
    try:
        with np.errstate(all="ignore"):
            (answers,) = TASKS[way.spec.task].answer.read(way.spec, outputs, [placement], Requested())
    except Exception as error:  # noqa: BLE001  shapes that say one thing and arrays that are another
        _out(way, "unreadable", error)
        return
    if any(not plausibility.is_number(one.get("score")) for one in answers):
        _out(way, "no_numbers")
        return
    way.answers.append(answers)


def _out(way: Way, code: str, error: Exception | None = None) -> None:
    way.why = code
    if error is not None:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        sys.stdout.write(f"Way {way.number} falls out, {code}: {said}\n")


def _best(ways: Sequence[Way]) -> list[Way]:
    """The best ways, best first; of ways that answer alike the first, which is the more usual one.

    Some that found nothing stand behind fewer than LEAST_SHOWN others: one sees what a wrong way looks like. Where no
    way found anything there is none to choose.
    """
    ran = sorted((way for way in ways if not way.why), key=lambda way: (-way.score, -way.sure, way.number))
    shown: list[Way] = []
    some = any(any(way.answers) for way in ran)
    for way in ran:
        if any(way.answers) and any(_alike(way, other) for other in shown):
            way.why = "same"
        elif len(shown) == MOST_SHOWN:
            way.why = "worse"
        elif way.score <= 0 and (len(shown) >= LEAST_SHOWN or not some):
            way.why = "nothing"
        else:
            shown.append(way)
    return shown


def _alike(way: Way, other: Way) -> bool:
    return way.described["task"] == other.described["task"] and way.answers == other.answers


def _short(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first answers of a picture, their masks only as far as they are few and small."""
    kept, left = [], MOST_MASK_BYTES
    for place, one in enumerate(answers[:MOST_ANSWERS]):
        if mask := one.get("mask"):
            left -= len(mask["counts"])
            if left < 0 or place >= MOST_MASKS:
                one = {name: value for name, value in one.items() if name != "mask"}
        kept.append(one)
    return kept


def _kept(one: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without what is too large to be shown beside others."""
    return {name: value for name, value in one.items() if name == "mask" or len(json.dumps(value)) <= MOST_FIELD}
