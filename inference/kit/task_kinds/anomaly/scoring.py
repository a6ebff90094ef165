"""Figures of an anomaly detector, by scikit-learn, from its stored scores."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn import metrics

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.task_kinds.anomaly.answer import heat_of, png, score_of

GOOD, BAD = 0, 1
FAINT = 0.9  # share of the threshold below which a heat map shows nothing; what is usual scores little less


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's score and heat map; the model's only class is that of good images."""
    return [
        {
            "path": sample.path,
            "id": sample.id,
            "label": sample.label,
            "good": mapping[0],
            "score": round(score_of(spec, outputs, row), 6),
            "threshold": spec.decode.score_threshold,  # the model's own: evaluations lower that of limits
            "heat": base64.b64encode(png(heat_of(spec, outputs, row, placement))).decode(),
        }
        for row, (sample, placement) in enumerate(samples)
    ]


def files(lines: list[Line]) -> dict[str, str]:
    """None: predictions.jsonl says it all."""
    return {}


def agreement(first: Line, second: Line, threshold: float) -> float:
    """1 where both say the same of an image, good or not."""
    return float((first["score"] >= first["threshold"]) == (second["score"] >= second["threshold"]))


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first.

    AUROC and average precision are None where the images are all good or all bad.
    """
    sample_by_path = {sample.path: sample for sample in truth.samples}
    good, threshold = lines[0]["good"], float(lines[0]["threshold"])
    scores = np.array([line["score"] for line in lines])
    bad = np.array([line["label"] != good for line in lines])
    reported = scores >= threshold
    table = _table(bad, reported)
    both = bool(bad.any() and not bad.all())
    summary: dict[str, float | None] = {
        "auroc": float(metrics.roc_auc_score(bad, scores)) if both else None,
        "average_precision": float(metrics.average_precision_score(bad, scores)) if both else None,
        **counts.rates(int(table[BAD, BAD]), int(table[GOOD, BAD]), int(table[BAD].sum())),
        "good_share": float(table[GOOD, GOOD] / table[GOOD].sum()) if table[GOOD].any() else None,
        "threshold": threshold,
    }
    label = np.array([line["label"] for line in lines])
    classes = [
        {"id": item.id, "name": item.name, **_reported(scores[label == item.id], threshold)} for item in truth.classes
    ]
    images = [_image(line, sample_by_path[line["path"]], good, threshold) for line in lines]
    images.sort(key=lambda item: (-item["badness"], item["path"]))
    name = next(model_class.name for model_class in truth.classes if model_class.id == good)
    confusion = {"labels": [name, "≠ " + name], "background": False, "matrix": table.tolist(), "unit": ""}
    return {"summary": summary, "classes": classes, "good": good, "confusion": confusion}, images


def _table(bad: NDArray[np.bool_], reported: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the images that are good and bad [rows] and were predicted as good and bad [columns]."""
    return np.bincount(2 * bad.astype(np.int64) + reported, minlength=4).reshape(2, 2)


def _reported(scores: NDArray[Any], threshold: float) -> dict[str, Any]:
    """Return how many images of a class are reported, and their mean score."""
    reported = scores >= threshold
    return {
        "truths": len(scores),
        "reported": int(reported.sum()),
        "share": float(reported.mean()) if len(scores) else None,
        "score": float(scores.mean()) if len(scores) else None,
    }


def _image(line: Line, sample: Sample, good: int, threshold: float) -> dict[str, Any]:
    bad, reported = line["label"] != good, line["score"] >= threshold
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "truth": line["label"],
        "score": line["score"],
        "reported": reported,
        "right": bad == reported,
        "badness": round(threshold - line["score"] if bad else line["score"] - threshold, 6),
        "heat": base64.b64encode(coloured(base64.b64decode(line["heat"]), threshold)).decode(),
        "cells": [f"{int(bad)},{int(reported)}"],
    }


def coloured(grey: bytes, threshold: float) -> bytes:
    """Color a heat map as a PNG overlay: transparent where scores are usual, then yellow, red from the threshold on."""
    with Image.open(io.BytesIO(grey)) as opened:
        values = np.asarray(opened, np.float32) / 255
    hot = ((values / max(threshold, 1e-6) - FAINT) / (1 - FAINT)).clip(0, 1)
    colour = np.stack([np.full_like(hot, 225), 200 * (1 - hot) + 30 * hot, np.full_like(hot, 40), 190 * hot], -1)
    out = io.BytesIO()
    Image.fromarray(colour.round().astype(np.uint8), "RGBA").save(out, "PNG", optimize=True)
    return out.getvalue()
