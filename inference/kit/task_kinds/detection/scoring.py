"""Figures of a detector: COCO AP by faster-coco-eval, everything else from its stored boxes."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster
from numpy.typing import NDArray

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Box, Sample, Truth, Unfit
from inference.kit.task_kinds.detection import mistakes
from inference.kit.task_kinds.detection.answer import detections
from inference.kit.task_kinds.matching import boxes_overlap, ranked

MATCH_IOU = 0.5
MAX_BOXES = 100
STATS = ("map", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar1", "ar10", "ar100")


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's boxes as [class id, score, x1, y1, x2, y2] in its own pixels, best first.

    Raises:
        Unfit: an image has another size than its dataset version says.
    """
    lines = []
    for row, (sample, placement) in enumerate(samples):
        if (placement.width, placement.height) != (sample.width, sample.height):
            raise Unfit(f"{sample.path} is not the size the dataset says; the version is damaged.")
        boxes = detections(spec, outputs, row, placement, limits)
        rows = [
            [mapping[int(c)], round(float(s), 6), *(round(float(v), 3) for v in b)]
            for b, s, c in zip(boxes.boxes, boxes.scores, boxes.classes, strict=True)
            if int(c) in mapping
        ]
        lines.append({"path": sample.path, "id": sample.id, "boxes": rows})
    return lines


def files(lines: list[Line]) -> dict[str, str]:
    """The same boxes in COCO's results format, for other people's tools."""
    return {"predictions.json": json.dumps(coco_results(lines))}


def coco_results(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored boxes in COCO's results format."""
    return [
        {
            "image_id": line["id"],
            "category_id": class_id,
            "bbox": [x1, y1, round(x2 - x1, 3), round(y2 - y1, 3)],
            "score": score,
        }
        for line in lines
        for class_id, score, x1, y1, x2, y2 in line["boxes"]
    ]


def coco_figures(
    coco: dict[str, Any], results: list[dict[str, Any]], *, masks: bool = False
) -> tuple[dict[str, float | None], Any]:
    """Return COCO's summary by our names, and its precision array [T, R, K, A, M]; None where nothing counts.

    Args:
        masks: it is masks that overlap, not boxes.
    """
    if not results:
        return dict.fromkeys(STATS, 0.0 if coco["annotations"] else None), None
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(coco)
        predictions = truth.loadRes(results)
        judge = COCOeval_faster(truth, predictions, "segm") if masks else COCOeval_faster(truth, predictions, "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    figures = {n: (float(v) if v > -1 else None) for n, v in zip(STATS, judge.stats[: len(STATS)], strict=True)}
    return figures, judge.eval["precision"]


def agreement(first: Line, second: Line, threshold: float) -> float:
    """F1 of one model's boxes against the other's, matched by class and IoU of at least 0.5; 1 without any."""
    first_boxes, second_boxes = ([box for box in line["boxes"] if box[1] >= threshold] for line in (first, second))
    if not first_boxes or not second_boxes:
        return float(not first_boxes and not second_boxes)
    matches = sum(_count_matches(first_boxes, second_boxes, kind) for kind in {box[0] for box in first_boxes})
    return 2 * matches / (len(first_boxes) + len(second_boxes))


def _count_matches(first: list[list[float]], second: list[list[float]], kind: float) -> int:
    """Count the boxes of a class, best first, that match a free box of the other model."""
    own, others = (np.array([box[2:] for box in boxes if box[0] == kind]).reshape(-1, 4) for boxes in (first, second))
    table = boxes_overlap(own, others, np.zeros(len(others), bool))
    count = 0
    for row in table:
        if len(row) and row.max() >= MATCH_IOU:
            table[:, row.argmax()] = -1.0
            count += 1
    return count


def evaluate(truth: Truth, lines: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first."""
    by_path = {line["path"]: line for line in lines}
    samples = [sample for sample in truth.samples if sample.path in by_path]
    ids = {sample.id for sample in samples}
    coco = dict(truth.coco or {})
    coco["images"] = [i for i in coco["images"] if i["id"] in ids]
    coco["annotations"] = [_complete(a) for a in coco["annotations"] if a["image_id"] in ids]
    coco.setdefault("categories", [{"id": c.id, "name": c.name} for c in truth.classes])
    results = coco_results(lines)
    summary, precision = coco_figures(coco, results)
    order = sorted(c["id"] for c in coco["categories"])
    hits, truths = _hits(samples, by_path)
    classes = []
    for model_class in truth.classes:
        own = curve(precision, order.index(model_class.id)) if model_class.id in order else {}
        tp, fp = counts.by_threshold(hits.get(model_class.id, []))
        classes.append(
            {
                "id": model_class.id,
                "name": model_class.name,
                "truths": truths.get(model_class.id, 0),
                "tp": tp,
                "fp": fp,
                **own,
            }
        )
    index = counts.best_index(classes)
    for entry in classes:
        entry |= counts.rates(entry["tp"][index], entry["fp"][index], entry["truths"])
    threshold = counts.THRESHOLDS[index]
    number_by_class = {c.id: number for number, c in enumerate(truth.classes)}
    matrix = np.zeros((len(number_by_class) + 1,) * 2, int)
    images = [_image(sample, by_path[sample.path]["boxes"], threshold, number_by_class, matrix) for sample in samples]
    judged_images = [mistakes.judge_image(by_path[item.path]["boxes"], item.boxes, _forgiven) for item in samples]
    certain = [
        mistakes.from_score(own, item.boxes, threshold) for own, item in zip(judged_images, samples, strict=True)
    ]
    for image, judged in zip(images, certain, strict=True):
        image["mistakes"] = mistakes.to_rows(judged)
    images.sort(key=lambda item: (-item["badness"], -(item["fp"] + item["fn"]), item["path"]))
    evaluation = {
        "summary": {**summary, **counts.mean_rates(classes, index), "threshold": threshold},
        "thresholds": counts.THRESHOLDS,
        "classes": classes,
        "curves": {"recall": _RECALLS, "precision": mean_curve(classes)},
        "confusion": {
            "labels": [c.name for c in truth.classes] + [""],  # the last is background
            "background": True,
            "matrix": matrix.tolist(),
            "threshold": threshold,
            "iou": MATCH_IOU,
        },
        "mistakes": mistakes.summarize(judged_images, certain, truths, threshold),
    }
    return evaluation, images


_RECALLS = [round(i / 100, 2) for i in range(101)]


def _complete(annotation: dict[str, Any]) -> dict[str, Any]:
    x, y, w, h = annotation["bbox"]
    return {"iscrowd": 0, "area": w * h, **annotation, "bbox": [x, y, w, h]}


def curve(precision: Any, index: int) -> dict[str, Any]:
    """Return AP metrics and the PR curve (IoU 0.5, 101 recalls) of one class; None where it has no ground truth."""
    if precision is None:
        return {"ap": 0.0, "ap50": 0.0, "ap75": 0.0, "pr": [0.0] * 101}
    own = precision[:, :, index, 0, -1]

    def mean(values: Any) -> float | None:
        valid = values[values > -1]
        return float(valid.mean()) if valid.size else None

    return {
        "ap": mean(own),
        "ap50": mean(own[0]),
        "ap75": mean(own[5]),
        "pr": [round(float(v), 4) for v in own[0]] if mean(own[0]) is not None else None,
    }


def mean_curve(classes: Sequence[dict[str, Any]]) -> list[float]:
    """The mean over the classes of their PR curves."""
    curves = [c["pr"] for c in classes if c.get("pr")]
    return [round(float(v), 4) for v in np.mean(curves, 0)] if curves else [0.0] * 101


def overlaps(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """IoU of boxes [n, 4] and [m, 4] → [n, m]."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = (high - low).clip(0).prod(2)
    areas = (a[:, 2:] - a[:, :2]).prod(1)[:, None] + (b[:, 2:] - b[:, :2]).prod(1)[None]
    return shared / np.maximum(areas - shared, 1e-9)


def pair(boxes: Sequence[Sequence[float]], truths: Sequence[Box]) -> list[int | None]:
    """For each prediction (best first) the index of the free truth of highest IoU ≥ 0.5; None where there is none."""
    if not boxes or not truths:
        return [None] * len(boxes)
    table = overlaps(np.array([b[2:6] for b in boxes]), np.array([t.corners for t in truths]))
    free = np.ones(len(truths), bool)
    pairs: list[int | None] = []
    for row in table:
        open_row = np.where(free, row, 0)
        index = int(open_row.argmax())
        if open_row[index] >= MATCH_IOU:
            free[index] = False
            pairs.append(index)
        else:
            pairs.append(None)
    return pairs


def _hits(
    samples: Sequence[Sample], by_path: dict[str, dict[str, Any]]
) -> tuple[dict[int, list[tuple[float, bool]]], dict[int, int]]:
    """Per class: every answer (score, right), and how many truths there are."""
    hits: dict[int, list[tuple[float, bool]]] = {}
    truths: dict[int, int] = {}
    for sample in samples:
        for box in sample.boxes:
            if not box.crowd:
                truths[box.class_id] = truths.get(box.class_id, 0) + 1
        answers = sorted(by_path[sample.path]["boxes"], key=lambda b: -b[1])
        for class_id in {b[0] for b in answers}:
            own = [b for b in answers if b[0] == class_id]
            same = [t for t in sample.boxes if t.class_id == class_id and not t.crowd]
            crowd = [t for t in sample.boxes if t.class_id == class_id and t.crowd]
            for answer, truth in zip(own, pair(own, same), strict=True):
                if truth is None and _forgiven(answer, crowd):
                    continue
                hits.setdefault(class_id, []).append((answer[1], truth is not None))
    return hits, truths


def _forgiven(answer: Sequence[float], crowd: Sequence[Box]) -> bool:
    """Whether a prediction is inside a crowd box (shared area over its own ≥ 0.5), as in COCO."""
    x1, y1, x2, y2 = answer[2:6]
    area = max((x2 - x1) * (y2 - y1), 1e-9)
    for box in crowd:
        width = min(x2, box.corners[2]) - max(x1, box.corners[0])
        height = min(y2, box.corners[3]) - max(y1, box.corners[1])
        if max(width, 0) * max(height, 0) / area >= MATCH_IOU:
            return True
    return False


def _image(
    sample: Sample,
    boxes: Sequence[Sequence[float]],
    threshold: float,
    numbers: dict[int, int],
    matrix: NDArray[Any],
) -> dict[str, Any]:
    """One image's entry; its pairs are added to the confusion `matrix` [truth, answer]."""
    answers = sorted(boxes, key=lambda b: -b[1])
    certain = [b for b in answers if b[1] >= threshold]
    truths = [t for t in sample.boxes if not t.crowd]
    crowd = [t for t in sample.boxes if t.crowd]
    background = len(numbers)
    cells: list[tuple[int, int]] = []
    taken: set[int] = set()
    wrong = 0
    right: set[int] = set()
    for answer, truth in zip(certain, pair(certain, truths), strict=True):
        if truth is None:
            if _forgiven(answer, crowd):
                continue
            cells.append((background, numbers[int(answer[0])]))
            wrong += 1
            continue
        taken.add(truth)
        cells.append((numbers[truths[truth].class_id], numbers[int(answer[0])]))
        if truths[truth].class_id == answer[0]:
            right.add(truth)
        else:
            wrong += 1
    cells += [(numbers[t.class_id], background) for index, t in enumerate(truths) if index not in taken]
    for cell in cells:
        matrix[cell] += 1
    figures = counts.rates(len(right), wrong, len(truths))
    flawless = not truths and not wrong
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "truth": [[t.class_id, *t.corners, index in right] for index, t in enumerate(truths)],
        "answers": [list(b) for b in answers[:MAX_BOXES] if b[1] >= min(0.05, threshold)],
        "tp": len(right),
        "fp": wrong,
        "fn": len(truths) - len(right),
        "badness": 0.0 if flawless else round(1 - figures["f1"], 6),
        "cells": sorted({f"{t},{a}" for t, a in cells}),
        **_ranked(answers, sample.boxes),
    }


def _ranked(answers: Sequence[Sequence[float]], truths: Sequence[Box]) -> dict[str, Any]:
    """What the image adds to average precisions, by the overlap of boxes."""
    corners = np.array([box[2:6] for box in answers], float).reshape(-1, 4)
    there = np.array([box.corners for box in truths], float).reshape(-1, 4)
    crowd = np.array([box.crowd for box in truths], bool)
    return ranked(
        [(int(box[0]), float(box[1])) for box in answers],
        [(box.class_id, box.crowd) for box in truths],
        lambda own, others: boxes_overlap(corners[own], there[others], crowd[others]),
    )
