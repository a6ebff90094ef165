"""Figures of a tagger from its stored scores: each class is a question of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.task_kinds.tagging.answer import scores_of

EPSILON = 1e-15


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's scores by class id, and the model's own threshold."""
    return [
        {
            "path": sample.path,
            "id": sample.id,
            "threshold": spec.decode.score_threshold,  # the model's own: evaluations lower that of limits
            "scores": {str(mapping[p]): round(float(row[p]), 6) for p in mapping if p < len(row)},
        }
        for (sample, _), row in zip(samples, scores_of(spec, outputs), strict=True)
    ]


def files(lines: list[Line]) -> dict[str, str]:
    """None: predictions.jsonl says it all."""
    return {}


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Share of tags that both predict among those that one of them predicts; 1 where neither predicts any."""
    first_tags, second_tags = (
        {kind for kind, score in line["scores"].items() if score >= line["threshold"]} for line in (first, second)
    )
    return len(first_tags & second_tags) / len(first_tags | second_tags) if first_tags | second_tags else 1.0


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first.

    Precision, recall and F1 are those at the model's own threshold, not at the best one for these images.
    """
    ids, sample_by_path = [item.id for item in truth.classes], {sample.path: sample for sample in truth.samples}
    class_sets = [{box.class_id for box in sample_by_path[line["path"]].boxes} for line in lines]
    present = np.array([[class_id in classes for class_id in ids] for classes in class_sets])
    scores = np.array([[line["scores"].get(str(class_id), 0.0) for class_id in ids] for line in lines])
    threshold = float(lines[0]["threshold"])
    predicted = scores >= threshold
    index = int(np.searchsorted(counts.THRESHOLDS, threshold - 1e-9))
    classes: list[dict[str, Any]] = []
    for column, item in enumerate(truth.classes):
        tp, fp = counts.by_threshold(list(zip(scores[:, column].tolist(), present[:, column].tolist(), strict=True)))
        truths = int(present[:, column].sum())
        rates = counts.rates(tp[index], fp[index], truths)
        own = {**rates, **counts.precision_recall(present[:, column], scores[:, column])}
        classes.append({"id": item.id, "name": item.name, "truths": truths, "tp": tp, "fp": fp, **own})
    precisions = [entry["ap"] for entry in classes if entry["ap"] is not None]
    curves = [entry["pr"] for entry in classes if entry["pr"]]
    surprise = -np.log(np.maximum(np.where(present, scores, 1 - scores), EPSILON)).mean(1)
    matrix = np.zeros((len(ids) + 1,) * 2, int)
    images = [
        _image(
            sample_by_path[line["path"]], ids, present[row], scores[row], predicted[row], float(surprise[row]), matrix
        )
        for row, line in enumerate(lines)
    ]
    images.sort(key=lambda item: (-item["badness"], item["path"]))
    evaluation = {
        "summary": {
            "map": float(np.mean(precisions)) if precisions else None,
            "exact": float((present == predicted).all(1).mean()),
            **counts.mean_rates(classes, index),
            "threshold": counts.THRESHOLDS[index],
        },
        "thresholds": counts.THRESHOLDS,
        "classes": classes,
        "curves": {"recall": counts.RECALLS, "precision": np.mean(curves, 0).round(4).tolist() if curves else []},
        "confusion": {
            "labels": [item.name for item in truth.classes] + [""],  # the last is no tag at all
            "background": True,
            "matrix": matrix.tolist(),
            "threshold": threshold,
        },
    }
    return evaluation, images


def _image(
    sample: Sample,
    ids: Sequence[int],
    present: NDArray[np.bool_],
    scores: NDArray[np.float64],
    predicted: NDArray[np.bool_],
    surprise: float,
    matrix: NDArray[Any],
) -> dict[str, Any]:
    """Build one image's entry; its confusions are added to the `matrix` [truth, prediction]."""
    cells = confused(present, predicted)
    for cell in cells:
        matrix[cell] += 1
    shown = [index for index in np.argsort(-scores, kind="stable").tolist() if predicted[index]]
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "answers": [[ids[index], round(float(scores[index]), 6), bool(present[index])] for index in shown],
        "missed": [ids[index] for index in np.flatnonzero(present & ~predicted).tolist()],
        "badness": round(surprise, 6),
        "cells": sorted(f"{t},{a}" for t, a in cells),
    }


def confused(present: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the cells (truth, prediction) of one image [C] in the matrix.

    A correct tag is paired with itself. A missed tag is paired with each false one of the same image, because it is
    unknown which it was confused with; without one of the other kind it is paired with "nothing", the last index.
    """
    nothing = len(present)
    missed = np.flatnonzero(present & ~predicted).tolist()
    false = np.flatnonzero(~present & predicted).tolist()
    pairs = [(t, a) for t in missed or [nothing] for a in false or [nothing]] if missed or false else []
    return [(index, index) for index in np.flatnonzero(present & predicted).tolist()] + pairs
