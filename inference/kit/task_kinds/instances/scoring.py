"""Figures of an instance segmenter: COCO AP of masks and boxes; counts, curves and images from its stored answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faster_coco_eval.core import mask as coco_masks

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples.ground_truth import Sample, Truth, Unfit
from inference.kit.task_kinds.detection import scoring as boxes
from inference.kit.task_kinds.instances.answer import objects
from inference.kit.task_kinds.matching import ranked
from inference.kit.task_kinds.segmentation import truth_maps

ELLIPSE = "ellipse"  # shape used for a box where the model does not name one
APS = ("ap", "ap50", "ap75")
MAX_OBJECTS = 100  # objects of an image are kept, as COCO counts them


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's boxes as a detector's, best first, the mask and outline of each, and the shape used for boxes.

    Raises:
        Unfit: an image has another size than its dataset version says.
    """
    params = spec.raw.get("params")
    box_shape = params.get("boxes", ELLIPSE) if isinstance(params, Mapping) else ELLIPSE
    lines = []
    for row, (sample, placement) in enumerate(samples):
        if (placement.width, placement.height) != (sample.width, sample.height):
            raise Unfit(f"{sample.path} is not the size the dataset says; the version is damaged.")
        detected = objects(spec, outputs, row, placement, limits)
        selected = [item for item in detected if item.index in mapping][:MAX_OBJECTS]
        lines.append(
            {
                "path": sample.path,
                "id": sample.id,
                "stands": box_shape,
                "boxes": [
                    [mapping[item.index], round(item.score, 6), *(round(float(side), 3) for side in item.corners)]
                    for item in selected
                ],
                "masks": [item.runs(sample.width, sample.height) for item in selected],
                "rings": [item.rings() for item in selected],
            }
        )
    return lines


def files(lines: list[Line]) -> dict[str, str]:
    """The same objects in COCO's results format, for other people's tools."""
    return {"predictions.json": json.dumps(_results(lines))}


def _results(lines: Sequence[Line]) -> list[dict[str, Any]]:
    masks = [mask for line in lines for mask in line["masks"]]
    return [{**result, "segmentation": mask} for result, mask in zip(boxes.coco_results(lines), masks, strict=True)]


def agreement(first: Line, second: Line, threshold: float) -> float:
    """As a detector's: the boxes of the objects tell which are the same."""
    return boxes.agreement(first, second, threshold)


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation (see outputs/evaluation.json) and one entry per image, worst first.

    Objects are matched, and curves computed, by the IoU of boxes as for a detector; AP is that of the masks, with that
    of the boxes in addition. The lower the mask IoU of an image, the worse it ranks.
    """
    evaluation, images = boxes.evaluate(truth, lines)
    by_path = {line["path"]: line for line in lines}
    coco, objects = _masked_truth(truth, by_path)
    results = [{k: row[k] for k in ("image_id", "category_id", "score", "segmentation")} for row in _results(lines)]
    figures, precision = boxes.coco_figures(coco, results, masks=True)
    of_boxes = {f"box_{name}": evaluation["summary"][name] for name in boxes.STATS}
    evaluation["summary"] |= {**of_boxes, **figures}
    order = sorted(category["id"] for category in coco["categories"])
    for entry in evaluation["classes"]:
        if entry["id"] in order:
            own = boxes.curve(precision, order.index(entry["id"]))
            entry |= {f"box_{name}": entry.get(name) for name in APS} | {name: own.get(name) for name in APS}
    threshold = evaluation["summary"]["threshold"]
    judged: dict[int, list[dict[str, Any]]] = {}
    for row in coco["annotations"]:
        judged.setdefault(row["image_id"], []).append(row)
    for image in images:
        line = by_path[image["path"]]
        overlap = _mean_overlap(objects[image["path"]], line, threshold)
        image |= {"mask_iou": overlap, "badness": round(1 - overlap, 6)}
        image |= _ranked(line, judged.get(line["id"], []))
        # What is drawn: the outline of each answer kept by the detector's scoring, and the outlines that are there.
        rings = {tuple(box): outline for box, outline in zip(line["boxes"], line["rings"], strict=True)}
        image["outlines"] = [rings.get(tuple(answer), []) for answer in image["answers"]]
        image["truth_outlines"] = [_outline(row, line["stands"]) for row in _drawn(truth, line["id"])]
    images.sort(key=lambda row: (-row["badness"], row["path"]))
    return evaluation, images


def _ranked(line: Line, truths: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the image adds to average precisions, by the overlap of masks."""
    order = sorted(range(len(line["boxes"])), key=lambda index: -line["boxes"][index][1])
    boxes_, masks = ([line[part][index] for index in order] for part in ("boxes", "masks"))

    def overlaps(own: Sequence[int], others: Sequence[int]) -> Any:
        crowds = [int(truths[index]["iscrowd"]) for index in others]
        table = coco_masks.iou([masks[at] for at in own], [truths[at]["segmentation"] for at in others], crowds)
        return np.asarray(table, np.float64)

    return ranked(
        [(int(box[0]), float(box[1])) for box in boxes_],
        [(int(truth["category_id"]), bool(truth["iscrowd"])) for truth in truths],
        overlaps,
    )


def _drawn(truth: Truth, image_id: int) -> list[dict[str, Any]]:
    """Return the annotations of an image, without crowds, in the order of a sample's boxes."""
    annotations = (truth.coco or {}).get("annotations", [])
    return [
        annotation for annotation in annotations if annotation["image_id"] == image_id and not annotation.get("iscrowd")
    ]


def _outline(annotation: Mapping[str, Any], box_shape: str) -> list[list[float]]:
    """Return the rings of an annotation; of a mask the box, because its runs are not traced here."""
    segmentation = annotation.get("segmentation")
    if truth_maps.is_box(annotation) or isinstance(segmentation, Mapping):
        return [truth_maps.around(annotation["bbox"], "whole" if isinstance(segmentation, Mapping) else box_shape)]
    return [list(ring) for ring in segmentation or []]


def _masked_truth(truth: Truth, by_path: Mapping[str, Line]) -> tuple[dict[str, Any], dict[str, list[_Object]]]:
    """Return the truth with run-length masks, and class and runs of each image's objects by path.

    An object with only a box counts with the shape the model was trained on; as a crowd where it was ignored.

    An object with only a box counts as what the model has learned for it; as a crowd where that was nothing.
    """
    coco = dict(truth.coco or {})
    annotations: list[dict[str, Any]] = []
    objects: dict[str, list[_Object]] = {}
    samples = {sample.id: sample for sample in truth.samples if sample.path in by_path}
    for sample in samples.values():
        objects[sample.path] = []
    for annotation in coco["annotations"]:
        if annotation["image_id"] not in samples:
            continue
        sample = samples[annotation["image_id"]]
        box_shape = by_path[sample.path]["stands"]
        unjudged = bool(annotation.get("iscrowd")) or (box_shape == "ignore" and truth_maps.is_box(annotation))
        mask = truth_maps.encoded(annotation, (sample.width, sample.height), "whole" if unjudged else box_shape)
        annotations.append(
            {**annotation, "iscrowd": int(unjudged), "segmentation": mask, "area": float(coco_masks.area(mask))}
        )
        if not unjudged:
            objects[sample.path].append((int(annotation["category_id"]), mask))
    coco["images"] = [image for image in coco["images"] if image["id"] in samples]
    coco["annotations"] = annotations
    coco.setdefault("categories", [{"id": model_class.id, "name": model_class.name} for model_class in truth.classes])
    return coco, objects


_Object = tuple[int, dict[str, Any]]  # class and runs


def _mean_overlap(there: list[_Object], line: Line, threshold: float) -> float:
    """The mean over objects and answers of how far each one's mask overlaps with its best partner of the same class.

    An object nobody found and an answer where nothing is count nought; an image without either is right.
    """
    certain = [
        (int(box[0]), mask) for box, mask in zip(line["boxes"], line["masks"], strict=True) if box[1] >= threshold
    ]
    table = np.zeros((len(there), len(certain)))
    if table.size:
        overlaps = coco_masks.iou([mask for _, mask in there], [mask for _, mask in certain], [0] * len(certain))
        alike = [[kind == named for named, _ in certain] for kind, _ in there]
        table = np.where(alike, overlaps, 0.0)
    total = 0.0
    pairs = 0
    while table.size and table.max() > 0:  # the best pair first
        row, column = np.unravel_index(int(table.argmax()), table.shape)
        total, pairs = total + float(table[row, column]), pairs + 1
        table = np.delete(np.delete(table, row, 0), column, 1)
    count = len(there) + len(certain) - pairs
    return round(total / count, 6) if count else 1.0
