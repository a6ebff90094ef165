"""How good the answers of one way to read a model are, from 0 to 1.

With truth the answers are compared with it:

- Boxes: twice the overlaps (IoU) of pairs of answer and object, over the number of answers and objects together: the
  panoptic quality of Kirillov et al. (2019) without its cut at an overlap of one half, over all pictures. A pair is of
  one class, each is in one pair at most, and those that overlap most are paired first. Where model and data share no
  name of a class, any answer may be paired with any object. Of a segmenter, which answers one region for each class,
  the box of a region is compared with the box around all objects of the class.
- Classes of whole pictures: the mean of the share of pictures whose class was answered and of the probability that it
  was given; 0 where the numbers are no probabilities (outside of 0 to 1, or of a sum other than 1). Tags: the F1 of
  those answered.

Without truth nobody can know; what is judged is whether the answers look like those of a model that was shown what it
learned from:

- Boxes: on each picture the mean score of the answers, each times how plausible its box is: one without an area, over
  nearly all of the picture, very long, or cut at several edges of it is worth less or nothing. More than 50 answers on
  a picture, scores that are all equal, and five or more answers of one class alone count less. A picture on which
  nothing was found counts 0.
- Classes: how far the best probability is above chance; 0 where the numbers are no probabilities, less where every
  picture is of one class or all are as good as certain, as wrong pixels do.
- Tags: how far from undecided they are; less where none or all are there on every picture.
- Regions: the mean score by area, less where one region covers all of each picture.

Equal scores are told apart by `sure`, the mean score of the answers, and then by which way is more usual.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from inference.kit.contracts.served_task import SHAPES
from inference.kit.model_io.spec import ModelSpec
from inference.kit.task_kinds import TASKS
from inference.kit.task_kinds.matching import boxes_overlap
from inference.registry.import_check.samples import Object, Picture

MAX_PREDICTIONS = 50  # answers on a picture
ALIKE = 1e-6
FULL_IMAGE_SHARE = 0.98  # of a picture
MAX_ASPECT_RATIO = 20.0  # times as long as wide
CERTAIN = 0.9999
Prediction = Mapping[str, Any]
Rows = Sequence[Sequence[Prediction]]


def rate(spec: ModelSpec | None, answers: Rows, pictures: Sequence[Picture]) -> tuple[float, float]:
    """Return the score of the predictions and their mean confidence, both 0..1; see the module's docstring."""
    names = {kind.name for kind in spec.classes} if spec else set()
    classifies = spec is not None and spec.task in TASKS and TASKS[spec.task].answer.draft != SHAPES
    if classifies:
        labeled = [
            (row, picture) for row, picture in zip(answers, pictures, strict=True) if _class_names(picture) & names
        ]
        score = _classes_right(labeled) if labeled else _classes_plausible(answers)
    else:
        objects = [
            (row, picture) for row, picture in zip(answers, pictures, strict=True) if picture.objects is not None
        ]
        score = _boxes_right(objects, names) if objects else _boxes_plausible(answers, pictures, len(names))
    return _share(score), _share(_mean_confidence(answers))


def is_number(value: Any) -> bool:
    """Whether it is a number that is neither endless nor none."""
    return isinstance(value, int | float) and math.isfinite(value)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0


def _mean_confidence(answers: Rows) -> float:
    best = [max((float(prediction["score"]) for prediction in row), default=0.0) for row in answers]
    return sum(min(max(score, 0.0), 1.0) for score in best) / max(len(best), 1)


# with truth


def _class_names(picture: Picture) -> set[str]:
    """Return the names of the classes in an image."""
    return {picture.label} if picture.label else {item.name for item in picture.objects or ()}


def _classes_right(labeled: Sequence[tuple[Sequence[Prediction], Picture]]) -> float:
    shares = []
    for row, picture in labeled:
        truth = _class_names(picture)
        if row and "present" in row[0]:
            predicted = {prediction["name"] for prediction in row if prediction["present"]}
            shares.append(2 * len(predicted & truth) / max(len(predicted) + len(truth), 1))
        elif _are_probabilities(row):
            confidence = max(
                (float(prediction["score"]) for prediction in row if prediction["name"] in truth), default=0.0
            )
            shares.append(0.5 * (row[0]["name"] in truth) + 0.5 * confidence)
        else:
            return 0.0
    return sum(shares) / len(shares)


def _are_probabilities(row: Sequence[Prediction]) -> bool:
    scores = np.array([prediction["score"] for prediction in row], np.float64)
    return bool(len(scores)) and scores.min() >= 0 and scores.max() <= 1 and 0.98 < scores.sum() < 1.02


def _boxes_right(labeled: Sequence[tuple[Sequence[Prediction], Picture]], names: set[str]) -> float:
    shared = bool(names & {name for _row, picture in labeled for name in _class_names(picture)})
    overlap, count = 0.0, 0
    for row, picture in labeled:
        regions = any("share" in prediction for prediction in row)
        objects = _around(picture.objects or ()) if regions else list(picture.objects or ())
        predictions = [
            prediction for prediction in row if not shared or not regions or prediction["name"] in _class_names(picture)
        ]
        overlap += sum(_pairs(predictions, objects, shared=shared))
        count += len(predictions) + len(objects)
    return 2 * overlap / count if count else 0.0


def _around(objects: Sequence[Object]) -> list[Object]:
    """Return for each class the box around all its objects."""
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}
    for item in objects:
        boxes.setdefault(item.name, []).append(item.box)
    around = {
        name: (min(b[0] for b in own), min(b[1] for b in own), max(b[2] for b in own), max(b[3] for b in own))
        for name, own in boxes.items()
    }
    return [Object(name, box) for name, box in around.items()]


def _pairs(predictions: Sequence[Prediction], objects: Sequence[Object], *, shared: bool) -> Iterable[float]:
    """Yield the IoUs of the pairs of prediction and object, the largest first."""
    if not predictions or not objects:
        return
    boxes = np.array([item["box"] for item in predictions], np.float64).reshape(-1, 4)
    table = boxes_overlap(boxes, np.array([item.box for item in objects], np.float64), np.zeros(len(objects), bool))
    if shared:
        table = table * np.array([[item["name"] == other.name for other in objects] for item in predictions])
    table = np.nan_to_num(table)
    while table.size and table.max() > 0:
        row, column = np.unravel_index(int(table.argmax()), table.shape)
        yield float(table[row, column])
        table[row, :], table[:, column] = 0, 0


# without truth


def _classes_plausible(answers: Rows) -> float:
    if any("present" in prediction for row in answers for prediction in row):
        return _tags_plausible(answers)
    best, names = [], set()
    for row in answers:
        if not _are_probabilities(row):
            return 0.0
        chance = 1 / len(row)
        best.append((float(row[0]["score"]) - chance) / (1 - chance) if len(row) > 1 else 0.0)
        names.add(row[0]["name"])
    score = sum(best) / len(best)
    if len(answers) > 1 and len(names) == 1:
        score *= 0.5
    return score * 0.6 if min(best) > CERTAIN else score


def _tags_plausible(answers: Rows) -> float:
    scores = np.array([prediction["score"] for row in answers for prediction in row], np.float64)
    if not len(scores) or scores.min() < 0 or scores.max() > 1:
        return 0.0
    present = {bool(prediction["present"]) for row in answers for prediction in row}
    return float(np.abs(2 * scores - 1).mean()) * (0.3 if len(present) == 1 else 0.9)


def _boxes_plausible(answers: Rows, pictures: Sequence[Picture], classes: int) -> float:
    if any("share" in prediction for row in answers for prediction in row):
        return _regions_plausible(answers)
    sizes = [picture.image.size for picture in pictures]
    score = sum(_mean_worth(row, *size) for row, size in zip(answers, sizes, strict=True)) / max(len(answers), 1)
    names = [prediction["name"] for row in answers for prediction in row]
    return score * 0.8 if len(names) >= 5 and classes > 1 and len(set(names)) == 1 else score


def _mean_worth(row: Sequence[Prediction], width: int, height: int) -> float:
    """Return the mean worth of the boxes of an image."""
    if not row:
        return 0.0
    scores = [float(prediction["score"]) for prediction in row]
    worth = sum(
        score * _worth(prediction["box"], width, height)
        for prediction, score in zip(row, scores, strict=True)
        if score <= 1
    )
    worth *= min(1.0, MAX_PREDICTIONS / len(row)) / len(row)
    return worth * 0.25 if len(row) >= 3 and max(scores) - min(scores) < ALIKE else worth


def _worth(box: Sequence[float], width: int, height: int) -> float:
    """How plausible a box is, 0..1; boxes come cut at the edges of their picture."""
    wide, high = box[2] - box[0], box[3] - box[1]
    if not (wide >= 2 and high >= 2 and wide * high >= 2e-4 * width * height):
        return 0.0
    if wide * high > FULL_IMAGE_SHARE * width * height:
        return 0.2
    edges = sum((box[0] <= 0, box[1] <= 0, box[2] >= width, box[3] >= height))
    worth = (1.0, 0.9, 0.6, 0.3, 0.2)[edges]
    return worth * 0.3 if max(wide / high, high / wide) > MAX_ASPECT_RATIO else worth


def _regions_plausible(answers: Rows) -> float:
    scores, covered = [], []
    for row in answers:
        area = sum(float(prediction["share"]) for prediction in row)
        scores.append(
            sum(float(prediction["share"]) * float(prediction["score"]) for prediction in row) / area if area else 0.0
        )
        covered.append(max((float(prediction["share"]) for prediction in row), default=0.0) > FULL_IMAGE_SHARE)
    return sum(scores) / max(len(scores), 1) * (0.3 if all(covered) else 1.0)
