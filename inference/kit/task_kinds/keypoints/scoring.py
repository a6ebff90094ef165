"""Figures of a keypoint finder, from its stored points: how far they are from where they should be.

Objects are shown to the model by the boxes of the truth, so the figures say nothing about finding objects. NME divides
by √(width · height) of the box (Bulat & Tzimiropoulos 2017), PCK by its longer side (Yang & Ramanan 2013), OKS is that
of COCO.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster
from numpy.typing import NDArray

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples.ground_truth import Sample, Truth, Unfit, has_area
from inference.kit.task_kinds.keypoints.answer import read_points, skeletons

PERSON = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow"),
    *("right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle"),
    "right_ankle",
)  # COCO's seventeen points, and how far apart two people put each of them
SIGMAS = (0.026, 0.025, 0.025, 0.035, 0.035, *(0.079,) * 2, *(0.072,) * 2, *(0.062,) * 2, *(0.107,) * 2,
          *(0.087,) * 2, *(0.089,) * 2)  # fmt: skip
DEFAULT_SIGMA = 0.05  # for points without a measured value

Points = dict[str, list[float]]  # name → x, y, score


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """For each image its objects, in the order of the samples: class, and points by class id and name."""
    by_path: dict[str, Line] = {}
    boxed = bool(spec.input and spec.input.scope == "object")
    for row, (sample, placement) in enumerate(samples):
        line = by_path.setdefault(sample.path, {"path": sample.path, "id": sample.id, "boxed": boxed, "objects": []})
        result = read_points(spec, outputs, row, placement)
        kind = max(mapping, key=lambda index: result.classes[index])
        points = {
            str(class_id): {
                name: [round(float(value), 3) for value in point]
                for name, point in zip(own.names, result.points[own.places], strict=True)
            }
            for index, own in enumerate(skeletons(spec, len(result.points)))
            if (class_id := mapping.get(index)) is not None
        }
        score = round(float(result.classes[kind]), 6)
        line["objects"].append({"class_id": mapping[kind], "score": score, "points": points})
    return list(by_path.values())


def files(lines: list[Line]) -> dict[str, str]:
    """The same points in COCO's results format, for other tools."""
    results = [
        {
            "image_id": line["id"],
            "category_id": item["class_id"],
            "keypoints": [value for point in own.values() for value in point],
            "score": item["score"] * _sureness(own),
        }
        for line in lines
        for item in line["objects"]
        if (own := item["points"].get(str(item["class_id"])))
    ]
    return {"predictions.json": json.dumps(results)}


def _sureness(points: Points) -> float:
    return float(np.mean([point[2] for point in points.values()]))


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Share of objects of one class whose points differ, on average, by at most a twentieth of the object's extent."""
    same = [_is_same(item, other) for item, other in zip(first["objects"], second["objects"], strict=True)]
    return sum(same) / len(same) if same else 1.0


def _is_same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    if first["class_id"] != second["class_id"]:
        return False
    own, other = (item["points"].get(str(item["class_id"]), {}) for item in (first, second))
    positions = np.array([point[:2] for point in own.values()]).reshape(-1, 2)
    if not len(positions):
        return True
    distances = np.hypot(*(positions - np.array([other[name][:2] for name in own])).T)
    extent = max(float(np.ptp(positions, axis=0).max()), 20.0)  # of one point there is none: within a pixel then
    return float(distances.mean()) <= extent / 20


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first.

    Raises:
        Unfit: the version has no keypoints, or others than the model.
    """
    by_path = {line["path"]: line for line in lines}
    categories = {
        int(entry["id"]): entry for entry in (truth.coco or {}).get("categories", []) if entry.get("keypoints")
    }
    if not categories:
        raise Unfit("No class of this dataset version names keypoints, so nothing can be judged on it.")
    shown = _shown(truth, categories)
    judged: list[dict[str, Any]] = []
    images = []
    for sample in truth.samples:
        line = by_path.get(sample.path)
        if line is None:
            continue
        pairs = _pairs(shown.get(sample.id, []), line)
        own = [
            {**_judged(annotation, answer, categories[annotation["category_id"]]), "image": sample.id}
            for annotation, answer in pairs
        ]
        judged += own
        images.append(_image(sample, own, {c.id: index for index, c in enumerate(truth.classes)}))
    if not any(item["errors"] for item in judged):
        raise Unfit("The model and the dataset share no keypoint: their classes name other points.")
    images.sort(key=lambda entry: (-entry["badness"], entry["path"]))
    classes, points = [], []
    for model_class in truth.classes:
        own = [item for item in judged if item["class_id"] == model_class.id]
        if own:
            figures = {**_figures(own), "ap": _average_precision(own, categories[model_class.id])}
            classes.append({"id": model_class.id, "name": model_class.name, "truths": len(own), **figures})
            points += [
                {"class": model_class.name, **row} for row in _by_point(own, categories[model_class.id]["keypoints"])
            ]
    summary = {**_figures(judged), "oks_ap": float(np.mean([entry["ap"] for entry in classes]))}
    return {
        "summary": summary, "classes": classes, "points": points, "confusion": _confusion(truth, judged),
    }, images  # fmt: skip


def _shown(truth: Truth, categories: Mapping[int, Any]) -> dict[int, list[dict[str, Any] | None]]:
    """Annotations of each image in the order of its boxes; None for an object without points to evaluate."""
    shown: dict[int, list[dict[str, Any] | None]] = {}
    for annotation in (truth.coco or {}).get("annotations", []):
        x, y, w, h = annotation["bbox"]
        if annotation.get("iscrowd") or not has_area((x, y, x + w, y + h)):
            continue
        points = annotation.get("keypoints") or []
        is_complete = annotation["category_id"] in categories and len(points) == 3 * len(
            categories[annotation["category_id"]]["keypoints"]
        )
        shown.setdefault(annotation["image_id"], []).append(annotation if is_complete and any(points[2::3]) else None)
    return shown


def _pairs(shown: Sequence[dict[str, Any] | None], line: Line) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Annotations with the predicted object of each; a model of whole images predicts the largest one."""
    if line["boxed"]:
        pairs = zip(shown, line["objects"], strict=False)
        return [(there, answer) for there, answer in pairs if there is not None]
    there = max(
        (annotation for annotation in shown if annotation),
        key=lambda annotation: math.prod(annotation["bbox"][2:]),
        default=None,
    )
    return [(there, line["objects"][0])] if there else []


def _judged(annotation: Mapping[str, Any], answer: Mapping[str, Any], category: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate one object: the distance of each annotated point in pixels, by name."""
    class_id = int(annotation["category_id"])
    answered: Points = answer["points"].get(str(class_id), {})
    there = dict(zip(category["keypoints"], _triples(annotation["keypoints"]), strict=True))
    errors = {
        name: math.dist(point[:2], answered[name][:2])
        for name, point in there.items()
        if point[2] > 0 and name in answered
    }
    w, h = annotation["bbox"][2:]
    return {
        "class_id": class_id, "said_id": answer["class_id"], "score": answer["score"], "errors": errors,
        "size": math.sqrt(w * h), "side": max(w, h), "there": there, "answered": answered,
        "links": category.get("skeleton") or [], "annotation": annotation,
    }  # fmt: skip


def _triples(values: Sequence[float]) -> list[list[float]]:
    return [[float(value) for value in values[start : start + 3]] for start in range(0, len(values), 3)]


def _nme(item: Mapping[str, Any]) -> float | None:
    return float(np.mean(list(item["errors"].values()))) / item["size"] if item["errors"] else None


def _figures(judged: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """NME as the mean over objects, PCK as the share of all points."""
    errors = [value for item in judged if (value := _nme(item)) is not None]
    shares = np.array([error / item["side"] for item in judged for error in item["errors"].values()])
    right = [item["class_id"] == item["said_id"] for item in judged]
    return {
        "nme": float(np.mean(errors)) if errors else None,
        "pck05": float((shares <= 0.05).mean()) if len(shares) else None,
        "pck10": float((shares <= 0.1).mean()) if len(shares) else None,
        "class_accuracy": float(np.mean(right)),
    }


def _by_point(judged: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Metrics of each point of a class."""
    rows = []
    for name in names:
        own = [item for item in judged if name in item["errors"]]
        shares = np.array([item["errors"][name] / item["side"] for item in own])
        errors = [item["errors"][name] / item["size"] for item in own]
        rows.append(
            {
                "name": name,
                "truths": len(own),
                "nme": float(np.mean(errors)) if own else None,
                "pck05": float((shares <= 0.05).mean()) if own else None,
            }
        )
    return rows


def _average_precision(judged: Sequence[Mapping[str, Any]], category: Mapping[str, Any]) -> float:
    """COCO's AP of the objects of one class; an object that was predicted as another class counts as missed."""
    names = list(category["keypoints"])
    images = sorted({item["image"] for item in judged})
    truths = [
        {**item["annotation"], "id": number, "num_keypoints": sum(p[2] > 0 for p in item["there"].values()),
         "area": item["annotation"].get("area") or item["size"] ** 2, "iscrowd": 0}
        for number, item in enumerate(judged, 1)
    ]  # fmt: skip
    results = [
        {"image_id": item["image"], "category_id": item["class_id"],
         "score": item["score"] * _sureness(item["answered"]),
         "keypoints": [value for name in names for value in item["answered"].get(name, (0.0, 0.0, 0.0))]}
        for item in judged
        if item["said_id"] == item["class_id"] and item["answered"]
    ]  # fmt: skip
    if not results:
        return 0.0
    sigmas = SIGMAS if tuple(names) == PERSON else (DEFAULT_SIGMA,) * len(names)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(
            {"info": {}, "images": [{"id": image} for image in images], "annotations": truths, "categories": [category]}
        )
        judge = COCOeval_faster(coco, coco.loadRes(results), "keypoints", kpt_oks_sigmas=list(sigmas))
        judge.params.maxDets = [max(Counter(item["image"] for item in judged).values())]  # COCO's 20 would miss some
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return max(0.0, float(judge.stats[0]))


def _confusion(truth: Truth, judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Count which class objects were predicted as."""
    index_by_class = {model_class.id: index for index, model_class in enumerate(truth.classes)}
    matrix: NDArray[np.int64] = np.zeros((len(index_by_class),) * 2, np.int64)
    for item in judged:
        matrix[index_by_class[item["class_id"]], index_by_class[item["said_id"]]] += 1
    return {
        "labels": [model_class.name for model_class in truth.classes],
        "background": False,
        "matrix": matrix.tolist(),
    }


def _image(sample: Sample, judged: Sequence[Mapping[str, Any]], index_by_class: Mapping[int, int]) -> dict[str, Any]:
    """Build one image's entry: the drawing on it, and its mean error."""
    errors = [value for item in judged if (value := _nme(item)) is not None]
    badness = float(np.mean(errors)) if errors else 0.0
    shares = [error / item["side"] for item in judged for error in item["errors"].values()]
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "nme": round(badness, 6) if errors else None,
        "measured": len(errors),
        "near": sum(share <= 0.05 for share in shares),
        "points": len(shares),
        "badness": round(badness, 6),
        "objects": [_drawn(item) for item in judged],
        "cells": sorted({f"{index_by_class[item['class_id']]},{index_by_class[item['said_id']]}" for item in judged}),
    }


def _drawn(item: Mapping[str, Any]) -> dict[str, Any]:
    """Build the SVG paths of one object: lines and points of the ground truth and of the prediction."""
    names = list(item["there"])
    there = {name: point[:2] for name, point in item["there"].items() if point[2] > 0}
    answered = {name: point[:2] for name, point in item["answered"].items() if name in there}

    def lines_of(points: Mapping[str, Sequence[float]]) -> str:
        ends = [(names[a - 1], names[b - 1]) for a, b in item["links"] if min(a, b) >= 1 and max(a, b) <= len(names)]
        return "".join(f"M{_at(points[a])}L{_at(points[b])}" for a, b in ends if a in points and b in points)

    return {
        "class_id": item["class_id"],
        "truth_lines": lines_of(there),
        "said_lines": lines_of(answered),
        "points": [
            {
                "name": name,
                "truth": f"M{_at(there[name])}h0",
                "said": f"M{_at(answered[name])}h0" if name in answered else "",
            }
            for name in there
        ],
    }


def _at(point: Sequence[float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
