"""An anomaly detector's outputs as a score, a verdict, and a grey map of where the picture is unusual."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.contracts.schema import SHARE, YES, an_object
from inference.kit.contracts.served_task import Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import InputSpec, ModelSpec

HEAT_SIDE = 96  # longest side of a heat map, in pixels


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image one entry: score 0..1, whether it reaches the threshold, and the map as a grayscale PNG."""
    threshold = spec.decode.score_threshold if requested.score_threshold is None else requested.score_threshold
    answers = []
    for row, placement in enumerate(placements):
        score = score_of(spec, outputs, row)
        heat = base64.b64encode(png(heat_of(spec, outputs, row, placement))).decode()
        prediction = {"anomalous": score >= threshold, "score": round(score, 6), "threshold": threshold, "heat": heat}
        answers.append([prediction])
    return answers


def score_of(spec: ModelSpec, outputs: Arrays, row: int) -> float:
    """How unusual the picture in this row of a run is, 0..1."""
    return float(np.asarray(outputs[spec.outputs["score"]], np.float32).reshape(-1)[row])


def heat_of(spec: ModelSpec, outputs: Arrays, row: int, placement: decode.Placement) -> NDArray[np.uint8]:
    """How unusual each part of the picture is, 0..255 of 0..1, without the frame around a letterboxed one."""
    values = np.asarray(outputs[spec.outputs["map"]], np.float32)[row]
    scale = min(1.0, HEAT_SIDE / max(placement.width, placement.height))
    size = (max(1, round(placement.width * scale)), max(1, round(placement.height * scale)))
    box = _within(placement, spec.input, values.shape) if spec.input else None
    large = Image.fromarray(values).resize(size, Image.Resampling.BILINEAR, box=box)
    return (255 * np.asarray(large).clip(0, 1)).round().astype(np.uint8)


def png(heat: NDArray[np.uint8]) -> bytes:
    """The bytes of a grey PNG."""
    out = io.BytesIO()
    Image.fromarray(heat).save(out, "PNG", optimize=True)
    return out.getvalue()


def _within(placement: decode.Placement, spec: InputSpec, shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    """Return the placement of the image in a map of this shape (rows, columns): left, top, right, bottom in cells."""
    across, down = shape[1] / spec.width, shape[0] / spec.height
    left, top = placement.offset_x * across, placement.offset_y * down
    right = min(left + placement.width * placement.scale_x * across, float(shape[1]))
    return left, top, right, min(top + placement.height * placement.scale_y * down, float(shape[0]))


ITEM = an_object(
    anomalous=YES,
    score=SHARE,
    threshold=SHARE,
    heat={"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
)
ANSWER = Answer(outputs=("score", "map"), read=read, item=ITEM, options=("score_threshold",), slow=True)
