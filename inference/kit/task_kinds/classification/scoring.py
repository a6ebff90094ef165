"""Figures of a classifier, by scikit-learn, from its stored probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.task_kinds.classification.answer import probabilities

MAX_PREDICTIONS = 5
EPSILON = 1e-15


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's label and its probabilities by class id."""
    rows = probabilities(spec, outputs)
    return [
        {
            "path": sample.path,
            "id": sample.id,
            "label": sample.label,
            "probabilities": {str(mapping[p]): round(float(row[p]), 6) for p in mapping if p < len(row)},
        }
        for (sample, _), row in zip(samples, rows, strict=True)
    ]


def files(lines: list[Line]) -> dict[str, str]:
    """None: predictions.jsonl says it all."""
    return {}


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Return 1 where both predict the same class, else 0."""
    first_class, second_class = (
        max(line["probabilities"].items(), key=lambda pair: pair[1])[0] for line in (first, second)
    )
    return float(first_class == second_class)


def evaluate(truth: Truth, lines: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first."""
    ids = [c.id for c in truth.classes]
    columns = {class_id: column for column, class_id in enumerate(ids)}
    shares = np.array([[line["probabilities"].get(str(i), 0.0) for i in ids] for line in lines])
    label = np.array([columns[line["label"]] for line in lines])
    answer = shares.argmax(1)
    every = list(range(len(ids)))
    present = sorted(set(label.tolist()))
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        label, answer, labels=every, average=None, zero_division=0
    )
    macro = metrics.precision_recall_fscore_support(label, answer, labels=present, average="macro", zero_division=0)
    of_truth = shares[np.arange(len(label)), label]
    classes = []
    for column, model_class in enumerate(truth.classes):
        answered = answer == column
        tp, fp = counts.by_threshold(
            list(zip(shares[answered, column].tolist(), (label[answered] == column).tolist(), strict=True))
        )
        classes.append(
            {
                "id": model_class.id,
                "name": model_class.name,
                "truths": int((label == column).sum()),
                "precision": float(precision[column]),
                "recall": float(recall[column]),
                "f1": float(f1[column]),
                "tp": tp,
                "fp": fp,
                **counts.precision_recall(label == column, shares[:, column]),
            }
        )
    curves = [c["pr"] for c in classes if c["pr"]]
    evaluation = {
        "summary": {
            "accuracy": float(metrics.accuracy_score(label, answer)),
            "precision": float(macro[0]),
            "recall": float(macro[1]),
            "f1": float(macro[2]),
            "recall_5": _top(shares, label, 5),
            "classification_loss": float(-np.log(np.maximum(of_truth, EPSILON)).mean()),
            "threshold": 0.0,
        },
        "thresholds": counts.THRESHOLDS,
        "classes": classes,
        "curves": {"recall": counts.RECALLS, "precision": np.mean(curves, 0).round(4).tolist() if curves else []},
        "confusion": {
            "labels": [c.name for c in truth.classes],
            "background": False,
            "matrix": metrics.confusion_matrix(label, answer, labels=every).tolist(),
            "threshold": 0.0,
        },
    }
    sizes = {sample.path: sample for sample in truth.samples}
    images = []
    for row, line in enumerate(lines):
        best = np.argsort(-shares[row], kind="stable")[:MAX_PREDICTIONS]
        sample = sizes[line["path"]]
        images.append(
            {
                "path": line["path"],
                "width": sample.width,
                "height": sample.height,
                "truth": ids[label[row]],
                "answers": [[ids[column], round(float(shares[row, column]), 6)] for column in best],
                "right": bool(answer[row] == label[row]),
                "badness": round(float(-np.log(max(of_truth[row], EPSILON))), 6),
                "cells": [f"{label[row]},{answer[row]}"],
            }
        )
    images.sort(key=lambda entry: (-entry["badness"], entry["path"]))
    return evaluation, images


def _top(shares: NDArray[Any], label: NDArray[Any], count: int) -> float:
    """Share of images whose class is among the `count` most probable (all classes count when there are fewer)."""
    best = np.argsort(-shares, axis=1, kind="stable")[:, :count]
    return float((best == label[:, None]).any(1).mean())
