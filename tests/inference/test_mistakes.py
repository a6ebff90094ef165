"""Kinds of a detector's mistakes, and what mending those of one kind would be worth."""

from __future__ import annotations

import numpy as np
import pytest

from inference.kit.samples.ground_truth import Box
from inference.kit.task_kinds.detection import mistakes, scoring
from inference.kit.task_kinds.detection.mistakes import BACKGROUND, BOTH, CLASS, DUPLICATE, KINDS, LOCATION, MISSED

CAT, DOG = 1, 2


def _judged(answers, truths):
    return mistakes.judge_image(answers, truths, scoring._forgiven)


def test_each_mistake_is_of_one_kind():
    truths = [Box(CAT, (0, 0, 10, 10)), Box(CAT, (100, 0, 110, 10)), Box(DOG, (200, 0, 210, 10)),
              Box(DOG, (300, 0, 310, 10)), Box(CAT, (400, 0, 440, 40), crowd=True)]  # fmt: skip
    answers = [
        [CAT, 0.9, 0, 0, 10, 10],
        [CAT, 0.8, 0, 0, 10, 9],  # again
        [CAT, 0.7, 106, 0, 116, 10],  # beside it
        [CAT, 0.6, 200, 0, 210, 10],  # a dog
        [DOG, 0.5, 500, 0, 510, 10],  # nothing
        [DOG, 0.4, 105, 0, 115, 10],  # neither
        [CAT, 0.3, 405, 5, 415, 15],  # in the crowd
    ]

    judged = _judged(answers, truths)

    kinds = [row.kind for row in judged]
    assert kinds == ["right", DUPLICATE, LOCATION, CLASS, BACKGROUND, BOTH, "passed", MISSED]
    assert (judged[2].truth, judged[3].truth_class, judged[-1].class_id) == (1, DOG, DOG)


def test_mending_one_kind_gives_what_the_oracle_would_find():
    """A cat is named a dog; a dog is missed: each kind's gain by hand."""
    truths = [Box(CAT, (0, 0, 10, 10)), Box(DOG, (200, 0, 210, 10)), Box(DOG, (300, 0, 310, 10))]
    judged = [_judged([[DOG, 0.9, 0, 0, 10, 10], [DOG, 0.8, 200, 0, 210, 10]], truths)]

    now, gained = mistakes.gains(judged, {CAT: 1, DOG: 2})

    # dogs: second answer right → precision ½ up to recall ½, 51 of 101 places; cats: nothing
    half = 51 / 101
    assert now == pytest.approx(half / 2 / 2)
    assert gained[CLASS] == pytest.approx((1 + half) / 2 - now)
    assert gained[MISSED] == pytest.approx(0.5 / 2 - now)
    assert [kind for kind in KINDS if gained[kind] == 0] == [LOCATION, BOTH, DUPLICATE, BACKGROUND]


def test_average_precision_is_that_of_coco_on_chance():
    """Boxes by chance, without crowds: the same as faster-coco-eval says at an overlap of 0.5."""
    chance = np.random.default_rng(5)
    images, lines, coco = [], [], {"images": [], "annotations": [], "categories": [{"id": CAT}, {"id": DOG}]}
    objects = {CAT: 0, DOG: 0}
    for number in range(1, 41):
        corners = [(x, y, x + w, y + h) for x, y, w, h in chance.uniform((0, 0, 10, 10), (60, 60, 40, 40), (6, 4))]
        truths = [Box(int(chance.integers(1, 3)), row) for row in corners]
        answers = [
            [int(row.class_id if chance.random() < 0.7 else 3 - row.class_id), float(chance.random()),
             *(np.array(row.corners) + chance.normal(0, 4, 4))]
            for row in truths for _again in range(2)
        ]  # fmt: skip
        answers = [row for row in answers if row[4] > row[2] and row[5] > row[3]]
        images.append(_judged(answers, truths))
        lines.append({"id": number, "boxes": answers})
        coco["images"].append({"id": number, "width": 100, "height": 100})
        for row in truths:
            objects[row.class_id] += 1
            x, y, right, low = row.corners
            box = [x, y, right - x, low - y]
            annotation = {"id": len(coco["annotations"]) + 1, "image_id": number, "category_id": row.class_id}
            coco["annotations"].append({**annotation, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})

    now, gained = mistakes.gains(images, objects)

    summary, _precision = scoring.coco_figures(coco, scoring.coco_results(lines))
    assert now == pytest.approx(summary["ap50"], abs=1e-6)
    assert all(gain >= 0 for gain in gained.values())
