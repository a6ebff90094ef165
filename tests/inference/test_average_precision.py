"""Average precisions of drawn images: COCO's own where every image counts once, and right where some count twice."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
import pytest

from inference.evaluation import average_precision, resampling
from inference.evaluation.average_precision import Ranking
from inference.kit.task_kinds import TASKS, matching
from inference.kit.task_kinds.detection import scoring
from tests.cases import case_table

Entry = dict[str, Any]
Scene = tuple[dict[str, Any], list[Entry]]  # COCO's truth, and lines of answers
ONCE = np.ones((1, 40))


def moved(box: Any, by: Any) -> list[float]:
    """A box whose corners went elsewhere, with its own corners in order."""
    corners = np.asarray(box) + by
    return [*np.minimum(corners[:2], corners[2:]), *np.maximum(corners[:2], corners[2:])]


def scene(seed: int, *, images: int = 40, skill: float = 6.0, crowds: float = 0.1) -> Scene:
    """COCO's truth and the answers to it: boxes moved by some `skill` pixels, some missed or made up."""
    chance = np.random.default_rng(seed)
    annotations, lines = [], []
    for image in range(images):
        answers = []
        for _object in range(int(chance.integers(0, 7))):
            kind, corner, size = int(chance.integers(1, 4)), chance.uniform(0, 150, 2), chance.uniform(8, 60, 2)
            crowd = int(chance.random() < crowds)
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": kind, "iscrowd": crowd,
                 "bbox": [*corner, *size], "area": float(size.prod())}
            )  # fmt: skip
            for _copy in range(int(chance.integers(0, 3))):
                box = moved([*corner, *(corner + size)], chance.normal(0, skill, 4))
                named = kind if chance.random() < 0.8 else int(chance.integers(1, 4))
                answers.append([named, float(chance.random()), *box])
        for _wrong in range(int(chance.integers(0, 4))):
            corner = chance.uniform(0, 150, 2)
            answers.append([int(chance.integers(1, 5)), float(chance.random() * 0.8), *corner, *(corner + 30)])
        lines.append({"path": f"{image:03d}", "id": image, "boxes": answers})
    coco = {
        "images": [{"id": image, "width": 256, "height": 256} for image in range(images)],
        "annotations": annotations,
        "categories": [{"id": kind, "name": str(kind)} for kind in range(1, 5)],
    }
    return coco, lines


def entries(coco: dict[str, Any], lines: list[Entry]) -> list[Entry]:
    rows = []
    for line in lines:
        own = [annotation for annotation in coco["annotations"] if annotation["image_id"] == line["id"]]
        answers = sorted(line["boxes"], key=lambda box: -box[1])
        truths = np.array(
            [[*annotation["bbox"][:2], *np.add(annotation["bbox"][:2], annotation["bbox"][2:])] for annotation in own]
        ).reshape(-1, 4)
        corners = np.array([box[2:] for box in answers]).reshape(-1, 4)
        crowd = np.array([bool(annotation["iscrowd"]) for annotation in own], bool)

        def overlaps(some, others, corners=corners, truths=truths, crowd=crowd):
            return matching.boxes_overlap(corners[some], truths[others], crowd[others])

        kinds = [(annotation["category_id"], bool(annotation["iscrowd"])) for annotation in own]
        rows.append(matching.ranked([(box[0], box[1]) for box in answers], kinds, overlaps))
    return rows


def coco_figures(coco: dict[str, Any], lines: list[Entry]) -> list[float | None]:
    figures, _precision = scoring.coco_figures(copy.deepcopy(coco), scoring.coco_results(lines))
    return [figures[name] for name in ("map", "ap50", "ap75")]


@case_table("seed", range(12))
def test_average_precision_is_that_of_coco(seed):
    coco, lines = scene(seed, skill=2.0 + seed)

    (levels,) = Ranking(entries(coco, lines)).precisions(ONCE)

    assert [levels.mean(), levels[0], levels[5]] == pytest.approx(coco_figures(coco, lines), abs=2e-5)  # float32 scores


@pytest.mark.parametrize("seed", range(6))
def test_image_that_is_drawn_twice_counts_as_two_images(seed):
    coco, lines = scene(seed)
    often = np.random.default_rng(seed).integers(0, 3, (1, 40)).astype(float)
    many: dict[str, Any] = {**coco, "images": [], "annotations": []}
    copies: list[Entry] = []
    for image, count in enumerate(often[0].astype(int)):
        for _copy in range(count):
            number = len(copies)
            many["images"].append({"id": number, "width": 256, "height": 256})
            for annotation in coco["annotations"]:
                if annotation["image_id"] == image:
                    many["annotations"].append({**annotation, "id": len(many["annotations"]) + 1, "image_id": number})
            copies.append({**lines[image], "id": number})

    (levels,) = Ranking(entries(coco, lines)).precisions(often)

    assert [levels.mean(), levels[0], levels[5]] == pytest.approx(coco_figures(many, copies), abs=2e-5)


def scored(first: list[Entry], second: list[Entry], seed: int) -> dict[str, resampling.Scored]:
    blank = {"tp": 0, "fp": 0, "fn": 0}
    both = [[blank | entry for entry in own] for own in (first, second)]
    return {entry.figure.key: entry for entry in resampling.score(TASKS["detection"], both, seed=[seed])}


@pytest.mark.long
def test_better_detector_is_told_from_an_equal_one():
    apart = alike = 0
    for seed in range(20):
        coco, lines = scene(seed, images=60)
        chance = np.random.default_rng(100 + seed)

        def moved(deviation, chance=chance, lines=lines):
            return [
                {
                    **line,
                    "boxes": [
                        [*box[:2], *(np.array(box[2:]) + chance.normal(0, deviation, 4))] for box in line["boxes"]
                    ],
                }
                for line in lines
            ]

        first, same, worse = (entries(coco, moved(deviation)) for deviation in (2.0, 2.0, 6.0))
        for other, kind in ((same, "same"), (worse, "worse")):
            drawn = scored(first, other, seed)["map"].drawn
            low, high = resampling.interval(drawn[:, 1] - drawn[:, 0])
            if kind == "same":
                alike += low <= 0 <= high
            else:
                apart += high < 0
    assert apart >= 19, "a detector whose boxes are off is not told from one whose boxes are not"
    assert alike >= 16, f"equal detectors are told apart in {20 - alike} of 20 cases"


def test_draws_grow_fewer_with_the_answers_and_end_where_they_would_take_too_long(monkeypatch):
    coco, lines = scene(0)
    ranking = Ranking(entries(coco, lines))
    assert average_precision.draws_of([ranking]) == average_precision.MAX_DRAWS

    ranking.answers = 200_000
    assert average_precision.draws_of([ranking]) == 250
    ranking.answers = average_precision.MAX_PREDICTIONS + 1
    assert average_precision.draws_of([ranking]) == 0


def test_entries_of_an_older_evaluator_have_no_average_precision():
    blank = [{"tp": 1, "fp": 0, "fn": 0}] * 40

    assert "map" not in {
        scored_.figure.key for scored_ in resampling.score(TASKS["detection"], [blank, blank], seed=[1])
    }


def test_nothing_there_and_nothing_found_is_no_number():
    nothing = [{"ranked": [], "truths": {}}] * 40
    missed = [{"ranked": [], "truths": {"1": 1}}] * 40

    assert np.isnan(Ranking(nothing).precisions(ONCE)).all()
    assert (Ranking(missed).precisions(ONCE) == 0).all()


def test_thousands_of_answers_are_drawn_anew_in_seconds():
    coco, lines = scene(3, images=1000)
    ranking, began = Ranking(entries(coco, lines)), time.process_time()

    ranking.precisions(np.random.default_rng(0).integers(0, 3, (50, 1000)).astype(float))

    assert time.process_time() - began < 20
