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
from inference.kit.task_kinds.keypoints.answer import look, skeletons

PERSON = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow"),
    *("right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle"),
    "right_ankle",
)  # COCO's seventeen points, and how far apart two people put each of them
SIGMAS = (0.026, 0.025, 0.025, 0.035, 0.035, *(0.079,) * 2, *(0.072,) * 2, *(0.062,) * 2, *(0.107,) * 2,
          *(0.087,) * 2, *(0.089,) * 2)  # fmt: skip
USUAL_SIGMA = 0.05  # of points nobody measured it for

Points = dict[str, list[float]]  # name → x, y, score


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """For each image its objects, in the order they were shown: class, and points by class id and name."""
    by_path: dict[str, Line] = {}
    boxed = bool(spec.input and spec.input.scope == "object")
    for row, (sample, placement) in enumerate(samples):
        line = by_path.setdefault(sample.path, {"path": sample.path, "id": sample.id, "boxed": boxed, "objects": []})
        found = look(spec, outputs, row, placement)
        kind = max(mapping, key=lambda place: found.classes[place])
        points = {
            str(class_id): {
                name: [round(float(value), 3) for value in point]
                for name, point in zip(own.names, found.points[own.places], strict=True)
            }
            for place, own in enumerate(skeletons(spec, len(found.points)))
            if (class_id := mapping.get(place)) is not None
        }
        score = round(float(found.classes[kind]), 6)
        line["objects"].append({"class_id": mapping[kind], "score": score, "points": points})
    return list(by_path.values())


def files(lines: list[Line]) -> dict[str, str]:
    """The same points in COCO's results format, for other people's tools."""
    results = [
        {
            "image_id": line["id"],
            "category_id": one["class_id"],
            "keypoints": [value for point in own.values() for value in point],
            "score": one["score"] * _sureness(own),
        }
        for line in lines
        for one in line["objects"]
        if (own := one["points"].get(str(one["class_id"])))
    ]
    return {"predictions.json": json.dumps(results)}


def _sureness(points: Points) -> float:
    return float(np.mean([point[2] for point in points.values()]))


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Share of objects of one class whose points lie, on the mean, within a twentieth of the object's extent."""
    same = [_same(one, two) for one, two in zip(first["objects"], second["objects"], strict=True)]
    return sum(same) / len(same) if same else 1.0


def _same(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    if one["class_id"] != two["class_id"]:
        return False
    own, other = (each["points"].get(str(each["class_id"]), {}) for each in (one, two))
    places = np.array([point[:2] for point in own.values()]).reshape(-1, 2)
    if not len(places):
        return True
    away = np.hypot(*(places - np.array([other[name][:2] for name in own])).T)
    extent = max(float(np.ptp(places, axis=0).max()), 20.0)  # of one point there is none: within a pixel then
    return float(away.mean()) <= extent / 20


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first.

    Raises:
        Unfit: the version has no keypoints, or others than the model.
    """
    by_path = {line["path"]: line for line in lines}
    known = {int(entry["id"]): entry for entry in (truth.coco or {}).get("categories", []) if entry.get("keypoints")}
    if not known:
        raise Unfit("No class of this dataset version names keypoints, so nothing can be judged on it.")
    shown = _shown(truth, known)
    judged: list[dict[str, Any]] = []
    images = []
    for sample in truth.samples:
        line = by_path.get(sample.path)
        if line is None:
            continue
        pairs = _pairs(shown.get(sample.id, []), line)
        own = [
            {**_judged(annotation, said, known[annotation["category_id"]]), "image": sample.id}
            for annotation, said in pairs
        ]
        judged += own
        images.append(_image(sample, own, {c.id: place for place, c in enumerate(truth.classes)}))
    if not any(one["errors"] for one in judged):
        raise Unfit("The model and the dataset share no keypoint: their classes name other points.")
    images.sort(key=lambda one: (-one["badness"], one["path"]))
    classes, points = [], []
    for one in truth.classes:
        own = [each for each in judged if each["class_id"] == one.id]
        if own:
            figures = {**_figures(own), "ap": _average_precision(own, known[one.id])}
            classes.append({"id": one.id, "name": one.name, "truths": len(own), **figures})
            points += [{"class": one.name, **row} for row in _by_point(own, known[one.id]["keypoints"])]
    summary = {**_figures(judged), "oks_ap": float(np.mean([entry["ap"] for entry in classes]))}
    return {
        "summary": summary, "classes": classes, "points": points, "confusion": _confusion(truth, judged),
    }, images  # fmt: skip


def _shown(truth: Truth, known: Mapping[int, Any]) -> dict[int, list[dict[str, Any] | None]]:
    """Annotations of each image in the order its boxes were shown; None where one has no points to be judged by."""
    shown: dict[int, list[dict[str, Any] | None]] = {}
    for one in (truth.coco or {}).get("annotations", []):
        x, y, w, h = one["bbox"]
        if one.get("iscrowd") or not has_area((x, y, x + w, y + h)):
            continue
        points = one.get("keypoints") or []
        whole = one["category_id"] in known and len(points) == 3 * len(known[one["category_id"]]["keypoints"])
        shown.setdefault(one["image_id"], []).append(one if whole and any(points[2::3]) else None)
    return shown


def _pairs(shown: Sequence[dict[str, Any] | None], line: Line) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Annotations and what was answered for each; a model of whole pictures answers for the largest one."""
    if line["boxed"]:
        pairs = zip(shown, line["objects"], strict=False)
        return [(there, said) for there, said in pairs if there is not None]
    there = max((one for one in shown if one), key=lambda one: math.prod(one["bbox"][2:]), default=None)
    return [(there, line["objects"][0])] if there else []


def _judged(annotation: Mapping[str, Any], said: Mapping[str, Any], category: Mapping[str, Any]) -> dict[str, Any]:
    """One object: how far each known point is off, in pixels, by name."""
    class_id = int(annotation["category_id"])
    answered: Points = said["points"].get(str(class_id), {})
    there = dict(zip(category["keypoints"], _triples(annotation["keypoints"]), strict=True))
    errors = {
        name: math.dist(place[:2], answered[name][:2])
        for name, place in there.items()
        if place[2] > 0 and name in answered
    }
    w, h = annotation["bbox"][2:]
    return {
        "class_id": class_id, "said_id": said["class_id"], "score": said["score"], "errors": errors,
        "size": math.sqrt(w * h), "side": max(w, h), "there": there, "answered": answered,
        "links": category.get("skeleton") or [], "annotation": annotation,
    }  # fmt: skip


def _triples(values: Sequence[float]) -> list[list[float]]:
    return [[float(value) for value in values[start : start + 3]] for start in range(0, len(values), 3)]


def _nme(one: Mapping[str, Any]) -> float | None:
    return float(np.mean(list(one["errors"].values()))) / one["size"] if one["errors"] else None


def _figures(judged: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """NME as the mean over objects, PCK as the share of all points."""
    errors = [value for one in judged if (value := _nme(one)) is not None]
    shares = np.array([error / one["side"] for one in judged for error in one["errors"].values()])
    right = [one["class_id"] == one["said_id"] for one in judged]
    return {
        "nme": float(np.mean(errors)) if errors else None,
        "pck05": float((shares <= 0.05).mean()) if len(shares) else None,
        "pck10": float((shares <= 0.1).mean()) if len(shares) else None,
        "class_accuracy": float(np.mean(right)),
    }


def _by_point(judged: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Figures of each point of a class."""
    rows = []
    for name in names:
        own = [one for one in judged if name in one["errors"]]
        shares = np.array([one["errors"][name] / one["side"] for one in own])
        found = [one["errors"][name] / one["size"] for one in own]
        rows.append(
            {
                "name": name,
                "truths": len(own),
                "nme": float(np.mean(found)) if own else None,
                "pck05": float((shares <= 0.05).mean()) if own else None,
            }
        )
    return rows


def _average_precision(judged: Sequence[Mapping[str, Any]], category: Mapping[str, Any]) -> float:
    """COCO's AP of the objects of one class; an object that was taken for another class counts as not found."""
    names = list(category["keypoints"])
    images = sorted({one["image"] for one in judged})
    truths = [
        {**one["annotation"], "id": place, "num_keypoints": sum(p[2] > 0 for p in one["there"].values()),
         "area": one["annotation"].get("area") or one["size"] ** 2, "iscrowd": 0}
        for place, one in enumerate(judged, 1)
    ]  # fmt: skip
    results = [
        {"image_id": one["image"], "category_id": one["class_id"], "score": one["score"] * _sureness(one["answered"]),
         "keypoints": [value for name in names for value in one["answered"].get(name, (0.0, 0.0, 0.0))]}
        for one in judged
        if one["said_id"] == one["class_id"] and one["answered"]
    ]  # fmt: skip
    if not results:
        return 0.0
    sigmas = SIGMAS if tuple(names) == PERSON else (USUAL_SIGMA,) * len(names)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(
            {"info": {}, "images": [{"id": image} for image in images], "annotations": truths, "categories": [category]}
        )
        judge = COCOeval_faster(coco, coco.loadRes(results), "keypoints", kpt_oks_sigmas=list(sigmas))
        judge.params.maxDets = [max(Counter(one["image"] for one in judged).values())]  # COCO's 20 would miss some
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return max(0.0, float(judge.stats[0]))


def _confusion(truth: Truth, judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which class objects were taken for."""
    places = {known.id: place for place, known in enumerate(truth.classes)}
    matrix: NDArray[np.int64] = np.zeros((len(places),) * 2, np.int64)
    for one in judged:
        matrix[places[one["class_id"]], places[one["said_id"]]] += 1
    return {"labels": [known.name for known in truth.classes], "background": False, "matrix": matrix.tolist()}


def _image(sample: Sample, judged: Sequence[Mapping[str, Any]], places: Mapping[int, int]) -> dict[str, Any]:
    """One image's entry: what is drawn on it, and its mean error."""
    errors = [value for one in judged if (value := _nme(one)) is not None]
    badness = float(np.mean(errors)) if errors else 0.0
    shares = [error / one["side"] for one in judged for error in one["errors"].values()]
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "nme": round(badness, 6) if errors else None,
        "measured": len(errors),
        "near": sum(share <= 0.05 for share in shares),
        "points": len(shares),
        "badness": round(badness, 6),
        "objects": [_drawn(one) for one in judged],
        "cells": sorted({f"{places[one['class_id']]},{places[one['said_id']]}" for one in judged}),
    }


def _drawn(one: Mapping[str, Any]) -> dict[str, Any]:
    """What is drawn of one object, as SVG paths: lines and points of the truth and of the answer."""
    names = list(one["there"])
    there = {name: place[:2] for name, place in one["there"].items() if place[2] > 0}
    said = {name: place[:2] for name, place in one["answered"].items() if name in there}

    def lines_of(places: Mapping[str, Sequence[float]]) -> str:
        ends = [(names[a - 1], names[b - 1]) for a, b in one["links"] if min(a, b) >= 1 and max(a, b) <= len(names)]
        return "".join(f"M{_at(places[a])}L{_at(places[b])}" for a, b in ends if a in places and b in places)

    return {
        "class_id": one["class_id"],
        "truth_lines": lines_of(there),
        "said_lines": lines_of(said),
        "points": [
            {"name": name, "truth": f"M{_at(there[name])}h0", "said": f"M{_at(said[name])}h0" if name in said else ""}
            for name in there
        ],
    }


def _at(place: Sequence[float]) -> str:
    return f"{place[0]:.1f} {place[1]:.1f}"
