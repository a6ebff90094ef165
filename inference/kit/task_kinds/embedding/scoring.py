"""Figures of an embedder, from its stored vectors: how often an image's nearest others are of its class.

Recall@k and MAP@R (Musgrave et al. 2020) look for neighbours among the judged images, each but itself; classes that the
model never learned count like any other. kNN accuracy asks the known images inside the model, as a service does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Sample, Truth
from inference.kit.task_kinds.embedding.answer import gallery, named

AT_ONCE = 500  # images whose neighbours are sought at a time


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Return each image's vector, and the class that the reference images of the dataset's classes name."""
    similarity = np.asarray(outputs[spec.outputs["similarity"]], np.float32)
    vectors = np.asarray(outputs[spec.outputs["vector"]], np.float32)
    classes, _images = gallery(spec, similarity.shape[1])
    columns = np.array([column for column, kind in enumerate(classes) if kind in mapping], np.int64)
    lines = []
    for (sample, _placement), cosines, vector in zip(samples, similarity, vectors, strict=True):
        line: Line = {"path": sample.path, "id": sample.id, "class_id": None, "score": 0.0}
        if len(columns):
            result = named(cosines[columns], np.array(classes)[columns], count=1)
            line |= {"class_id": mapping[result.kind], "score": round(result.share, 6)}
        lines.append({**line, "vector": base64.b64encode(vector.astype("<f4").tobytes()).decode()})
    return lines


def files(lines: list[Line]) -> dict[str, str]:
    """The vectors as numbers, a line for each image, for other people's tools."""
    vectors = _vectors(lines).astype(float).round(6).tolist()
    rows = ({"path": line["path"], "vector": vector} for line, vector in zip(lines, vectors, strict=True))
    return {"vectors.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def _vectors(lines: Sequence[Line]) -> NDArray[np.float32]:
    vectors = np.stack([np.frombuffer(base64.b64decode(line["vector"]), "<f4") for line in lines])
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), np.float32)


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Cosine of the two vectors, 0 where it is negative."""
    first_vector, second_vector = _vectors([first, second])
    return float(np.clip(first_vector @ second_vector, 0, 1))


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first."""
    samples = {sample.path: sample for sample in truth.samples}
    index_by_class = {model_class.id: index for index, model_class in enumerate(truth.classes)}
    labels = np.array([index_by_class[samples[line["path"]].label or 0] for line in lines])
    first, five, precision, nearest = _neighbours(_vectors(lines), labels)
    counted = (
        (np.bincount(labels, minlength=len(index_by_class))[labels] > 1)
        if len(lines) > 1
        else np.zeros(len(lines), bool)
    )
    answered = np.array([index_by_class.get(line["class_id"], -1) for line in lines])
    matrix = np.zeros((len(index_by_class) + 1,) * 2, np.int64)
    np.add.at(matrix, (labels, answered), 1)  # unpredicted images are in the last column
    summary = {
        "recall_1": _mean(first, counted),
        "recall_5": _mean(five, counted),
        "map_r": _mean(precision, counted),
        "knn_accuracy": float((answered == labels).mean()),
    }
    classes = [
        {
            "id": model_class.id,
            "name": model_class.name,
            "truths": int((labels == index).sum()),
            "recall_1": _mean(first, counted & (labels == index)),
            "map_r": _mean(precision, counted & (labels == index)),
            **counts.rates(
                int(matrix[index, index]), int(matrix[:, index].sum() - matrix[index, index]), int(matrix[index].sum())
            ),
        }
        for index, model_class in enumerate(truth.classes)
    ]
    names = [model_class.name for model_class in truth.classes]
    confusion = {"labels": [*names, ""], "background": True, "matrix": matrix.tolist()}
    if not matrix[:, -1].any():
        confusion = {"labels": names, "background": False, "matrix": matrix[:-1, :-1].tolist()}
    images = []
    for row, line in enumerate(lines):
        sample = samples[line["path"]]
        neighbour = lines[nearest[row]]["path"] if len(lines) > 1 else None
        images.append(
            {
                "path": line["path"],
                "width": sample.width,
                "height": sample.height,
                "truth": sample.label,
                "answer": line["class_id"],
                "right": bool(answered[row] == labels[row]),
                "nearest": neighbour,
                "nearest_right": bool(first[row]),
                "has_others": bool(counted[row]),
                "badness": round(1.0 - float(precision[row]) + (answered[row] != labels[row]), 6),
                "cells": [f"{labels[row]},{answered[row] if answered[row] >= 0 else len(index_by_class)}"],
            }
        )
    images.sort(key=lambda entry: (-entry["badness"], entry["path"]))
    return {"summary": summary, "classes": classes, "confusion": confusion}, images


def _mean(values: NDArray[Any], counted: NDArray[np.bool_]) -> float | None:
    return float(values[counted].mean()) if counted.any() else None


def _neighbours(
    vectors: NDArray[np.float32], labels: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.int64]]:
    """For each image: the nearest other is of its class, one of five is, average precision at R, and the nearest."""
    total, own = len(labels), np.bincount(labels)[labels] - 1
    limit = min(max(int(own.max()), 5), total - 1)
    first, five = np.zeros(total, bool), np.zeros(total, bool)
    precise, nearest = np.zeros(total), np.zeros(total, np.int64)
    if limit < 1:
        return first, five, precise, nearest
    ranks = np.arange(1, limit + 1)
    for start in range(0, total, AT_ONCE):
        rows = np.arange(start, min(start + AT_ONCE, total))
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -2.0
        near = np.argpartition(-cosines, limit - 1, axis=1)[:, :limit]
        order = np.argsort(-np.take_along_axis(cosines, near, 1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, 1)
        right = labels[near] == labels[rows, None]
        within = right & (ranks <= own[rows, None])
        precise[rows] = (right.cumsum(1) / ranks * within).sum(1) / np.maximum(own[rows], 1)
        first[rows], five[rows], nearest[rows] = right[:, 0], right[:, :5].any(1), near[:, 0]
    return first, five, precise, nearest
