"""A few samples with the answers of a model, by which other machines tell whether it answers there as it did here."""

from __future__ import annotations

import base64
import io
import json
import platform
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

from inference.kit.model_io import decode
from inference.kit.model_io.engine import Loaded
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec
from inference.kit.models.selftest import TOLERANCE, Difference, difference, drawn
from inference.kit.models.standalone import Model
from inference.kit.samples.run import Run, write
from inference.kit.task_kinds import TASKS

FILE = "selftest.json"  # in the outputs
DRAWN, PICTURES = 2, 2  # samples of each sort, at most
MAX_BYTES = 240 << 10  # of a sample: its picture and its answer
LOOKED_AT = 12  # pictures, of which the steadiest become samples
MAX_DURATION_S = 60.0
SIDES = (640, 480, 320)  # of a picture, the first at which it is small enough
QUALITY = 90
MAX_PREDICTIONS = 50
LOWER = (0.1, 0.02)  # scores, for pictures on which the model is not sure of anything
SURER = (0.5, 0.7)  # for pictures with so many doubtful answers that some come and go
SHAKEN = 1 / 16  # share of the pixels that are changed by one step, as rounding does


def leave(run: Run, spec: ModelSpec, engine: Loaded, pictures: Sequence[Path]) -> None:
    """Write outputs/selftest.json; nothing where no picture is answered steadily enough.

    Errors are only reported: the evaluation is worth more than its samples.
    """
    (run.outputs / FILE).unlink(missing_ok=True)  # of an earlier try
    try:
        samples = _samples(Model.loaded(spec, engine), pictures)
    except Exception as exc:  # noqa: BLE001  models and decoders raise anything
        print(f"No samples for self-tests: {exc}", flush=True)
        return
    if samples:
        made_with = {"machine": platform.machine(), "onnxruntime": onnxruntime.__version__, "provider": engine.provider}
        write(
            run.outputs / FILE,
            json.dumps({"format": 1, "tolerance": TOLERANCE, "made_with": made_with, "samples": samples}),
        )


def _samples(model: Model, pictures: Sequence[Path]) -> list[dict[str, Any]]:
    until = time.monotonic() + MAX_DURATION_S
    drawings = ((_upright(data), data, {"seed": seed}) for seed in range(LOOKED_AT // 2) if (data := drawn(seed)))
    step = max(1, len(pictures) // LOOKED_AT)
    samples = [*_steadiest(model, drawings, DRAWN, until), *_steadiest(model, _own(pictures[::step]), PICTURES, until)]
    return samples[: DRAWN + PICTURES]


def _own(pictures: Sequence[Path]) -> Iterator[tuple[Image.Image, bytes, dict[str, Any]]]:
    """Pictures of the data, smaller and without what a camera wrote into them."""
    for path in pictures[:LOOKED_AT]:
        try:
            image = decode.open_image(str(path), max_pixels=10**9).convert("RGB")
        except decode.BadImage:
            continue
        for side in SIDES:
            image.thumbnail((side, side))
            out = io.BytesIO()
            Image.fromarray(np.asarray(image)).save(out, "JPEG", quality=QUALITY)
            if out.tell() * 4 // 3 <= MAX_BYTES // 2:
                data = out.getvalue()
                yield _upright(data), data, {"picture": base64.b64encode(data).decode()}
                break


def _upright(data: bytes) -> Image.Image:
    return decode.open_image(data).convert("RGB")


def _steadiest(
    model: Model, candidates: Iterator[tuple[Image.Image, bytes, dict[str, Any]]], limit: int, until: float
) -> list[dict[str, Any]]:
    """Return samples whose predictions hardly change with small changes of pixels; others would fail on rounding."""
    steady: list[tuple[bool, float, int, dict[str, Any]]] = []
    for number, (image, data, source) in enumerate(candidates):
        if time.monotonic() > until:
            break
        shaken = _shaken(image, number)
        for options, answer in _answered(model, data):
            again = model.predict(shaken, Requested.from_values(options))
            moved: Difference = difference(answer, json.loads(json.dumps(again)), options)
            sample = {**source, "asked": options, "answer": answer}
            if moved.largest <= TOLERANCE and len(json.dumps(sample)) <= MAX_BYTES:
                steady.append((not answer["predictions"], moved.largest, number, sample))
                break
    steady.sort(key=lambda row: row[:3])
    return [sample for _empty, _moved, _place, sample in steady[:limit]]


def _answered(model: Model, data: bytes) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield options and the prediction as JSON returns it; callers use the first one that is stable.

    Of a less sure score where there is no answer, else of surer ones as long as any is left.
    """
    if "max_detections" not in TASKS[model.spec.task].answer.options:
        yield _predict_with(model, data, {"top_k": MAX_PREDICTIONS})
        return
    own = model.spec.decode.score_threshold
    for threshold in (own, *LOWER):
        first = _predict_with(model, data, {"score_threshold": threshold, "max_detections": MAX_PREDICTIONS})
        if first[1]["predictions"] or threshold == LOWER[-1]:
            yield first
            break
    for threshold in SURER if first[1]["predictions"] else ():
        surer = _predict_with(model, data, {"score_threshold": max(own, threshold), "max_detections": MAX_PREDICTIONS})
        if surer[1]["predictions"]:
            yield surer


def _predict_with(model: Model, data: bytes, options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return options, json.loads(json.dumps(model.predict(data, Requested.from_values(options))))


def _shaken(image: Image.Image, seed: int) -> bytes:
    """A PNG of a picture of which some pixels are one step brighter or darker."""
    rng, pixels = np.random.default_rng(seed), np.asarray(image, np.int16)
    steps = rng.choice((-1, 1), pixels.shape) * (rng.random(pixels.shape) < SHAKEN)
    out = io.BytesIO()
    Image.fromarray((pixels + steps).clip(0, 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()
