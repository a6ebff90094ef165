"""Figures of a segmenter, from its stored masks: overlap of what is there with what was answered, pixel by pixel."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples import counts
from inference.kit.samples.ground_truth import Sample, Truth, Unfit
from inference.kit.task_kinds.segmentation import runs, truth_maps
from inference.kit.task_kinds.segmentation.answer import segments

ELLIPSE = "ellipse"  # shape used for a box where the model does not name one
ERROR_SIDE = 480  # longest side of an error map
# Numbers of an error map and their colours: right, missed, wrong class, answered where nothing is, not judged.
RIGHT, MISSED, MISTAKEN, EXTRA, UNJUDGED = range(5)
COLOURS = ((0, 0, 0, 0), (214, 48, 40, 190), (135, 87, 214, 190), (208, 116, 27, 190), (148, 157, 173, 140))


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's masks by class id, and the shape used for boxes in the ground truth, as the model was trained.

    Raises:
        Unfit: an image has another size than its dataset version says.
    """
    params = spec.raw.get("params")
    boxes = params.get("boxes", ELLIPSE) if isinstance(params, Mapping) else ELLIPSE
    lines = []
    for row, (sample, placement) in enumerate(samples):
        if (placement.width, placement.height) != (sample.width, sample.height):
            raise Unfit(f"{sample.path} is not the size the dataset says; the version is damaged.")
        result = segments(spec, outputs, row, placement)
        masks = [
            {"class_id": mapping[index], "score": round(score, 6), "mask": runs.encode(result.places == index)}
            for index, score in result.scores.items()
            if index in mapping
        ]
        lines.append({"path": sample.path, "id": sample.id, "boxes": boxes, "masks": masks})
    return lines


def files(lines: list[Line]) -> dict[str, str]:
    """The same masks in COCO's results format, for other tools."""
    results = [
        {"image_id": line["id"], "category_id": item["class_id"], "segmentation": item["mask"], "score": item["score"]}
        for line in lines
        for item in line["masks"]
    ]
    return {"predictions.json": json.dumps(results)}


def agreement(first: Line, second: Line, threshold: float) -> float:
    """Mean IoU of both predictions over the classes that one of them contains; 1 without any."""
    first_masks, second_masks = (
        {own["class_id"]: runs.decode(own["mask"]) for own in line["masks"]} for line in (first, second)
    )
    kinds = first_masks.keys() | second_masks.keys()
    shared = [
        float((first_masks[kind] & second_masks[kind]).sum() / (first_masks[kind] | second_masks[kind]).sum())
        for kind in first_masks.keys() & second_masks.keys()
    ]
    return sum(shared) / len(kinds) if kinds else 1.0


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first."""
    by_path = {line["path"]: line for line in lines}
    index = {model_class.id: number for number, model_class in enumerate(truth.classes, 1)}
    annotations: dict[int, list[dict[str, Any]]] = {}
    for entry in (truth.coco or {}).get("annotations", []):
        annotations.setdefault(entry["image_id"], []).append(entry)
    table = np.zeros((len(index) + 1,) * 2, np.int64)
    images = []
    for sample in truth.samples:
        if sample.path not in by_path:
            continue
        line = by_path[sample.path]
        size = (sample.width, sample.height)
        there = truth_maps.draw(annotations.get(sample.id, []), size, index, boxes=line["boxes"])
        answered = _answered(line, size, index)
        own = _pairs(there, answered, len(index) + 1)
        table += own
        images.append(_image(sample, own, there, answered))
    images.sort(key=lambda entry: (-entry["badness"], entry["path"]))
    figures = _figures(table)
    classes = [
        {"id": model_class.id, "name": model_class.name, "truths": int(table[number].sum()), **_rates(table, number)}
        for number, model_class in enumerate(truth.classes, 1)
    ]
    last = [*range(1, len(index) + 1), 0]  # background is last, as everywhere
    confusion = {
        "labels": [model_class.name for model_class in truth.classes] + [""],
        "background": False,
        "matrix": table[np.ix_(last, last)].tolist(),
        "unit": "px",
    }
    return {"summary": figures, "classes": classes, "ground": _rates(table, 0), "confusion": confusion}, images


def _answered(line: Line, size: tuple[int, int], index: Mapping[int, int]) -> NDArray[np.uint8]:
    """Return the map [H, W] of the predictions, numbered as the ground truth."""
    answered = np.zeros((size[1], size[0]), np.uint8)
    for item in line["masks"]:
        answered[runs.decode(item["mask"])] = index[item["class_id"]]
    return answered


def _pairs(there: NDArray[Any], answered: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Pixels of each class [rows] that were answered as each class [columns]."""
    judged = there != truth_maps.IGNORED
    both = there[judged].astype(np.int64) * classes + answered[judged]
    return np.bincount(both, minlength=classes**2).reshape(classes, classes)


def _rates(table: NDArray[np.int64], number: int) -> dict[str, float | None]:
    """Metrics of one class over all pixels; no IoU where the class is absent."""
    right, truths, predicted = (
        int(part) for part in (table[number, number], table[number].sum(), table[:, number].sum())
    )
    union = truths + predicted - right
    rates = counts.rates(right, predicted - right, truths)
    return {"iou": right / union if truths else None, "dice": rates.pop("f1") if truths else None, **rates}


def _figures(table: NDArray[np.int64]) -> dict[str, float | None]:
    """Means over the ground and all classes that are there, as Pascal VOC has them, and the share of right pixels."""
    rates = [_rates(table, number) for number in range(len(table)) if table[number].sum()]

    def mean(name: str) -> float | None:
        values = [value for row in rates if (value := row[name]) is not None]
        return float(np.mean(values)) if values else None

    total = int(table.sum())
    return {
        "miou": mean("iou"),
        "dice": mean("dice"),
        "pixel_accuracy": float(table.trace() / total) if total else None,
        "mean_accuracy": mean("recall"),
    }


def _image(sample: Sample, own: NDArray[np.int64], there: NDArray[Any], answered: NDArray[Any]) -> dict[str, Any]:
    """One image's entry; a class counts in its badness where it is there or was answered."""
    union = own.sum(0) + own.sum(1) - own.diagonal()
    overlaps = own.diagonal()[union > 0] / union[union > 0]
    total = max(int(own.sum()), 1)
    places = [*range(1, len(own)), 0]
    pairs = [(places.index(t), places.index(a), int(own[t, a])) for t, a in zip(*np.nonzero(own), strict=True)]
    return {
        "path": sample.path,
        "width": sample.width,
        "height": sample.height,
        "miou": round(float(overlaps.mean()), 6) if len(overlaps) else 1.0,
        "accuracy": round(int(own.trace()) / total, 6),
        "badness": round(1 - float(overlaps.mean()), 6) if len(overlaps) else 0.0,
        "errors": base64.b64encode(error_map(there, answered)).decode(),
        "pairs": pairs,  # pixels of each cell: figures of all images can be had of any choice of them
        "cells": sorted(f"{t},{a}" for t, a, _count in pairs),
    }


def error_map(there: NDArray[Any], answered: NDArray[Any]) -> bytes:
    """A PNG with a palette: transparent where right, coloured by the kind of error elsewhere."""
    kinds = np.full(there.shape, RIGHT, np.uint8)
    wrong = there != answered
    kinds[wrong & (answered == 0)] = MISSED
    kinds[wrong & (there == 0)] = EXTRA
    kinds[wrong & (there > 0) & (answered > 0)] = MISTAKEN
    kinds[there == truth_maps.IGNORED] = UNJUDGED
    image = Image.fromarray(kinds)
    scale = min(1.0, ERROR_SIDE / max(image.size))
    if scale < 1:
        small = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(small, Image.Resampling.NEAREST)
    image = image.convert("P")
    image.putpalette([part for colour in COLOURS for part in colour[:3]])
    out = io.BytesIO()
    image.save(out, "PNG", transparency=bytes(colour[3] for colour in COLOURS), optimize=True)
    return out.getvalue()
