"""Evaluations beside each other: intervals, McNemar's test, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from aiplatform.lib.errors import DomainError, Invalid, NotFound
from inference.evaluation import differences, resampling, results
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def two(alice, tmp_path):
    """Two evaluations of one classifier on one version; `judged.rewrite` gives them other entries."""
    first = judged.evaluation(alice, tmp_path, task="classification")
    second = judged.judged(alice, first.model_version, first.version)
    return first, second


def test_mcnemar_says_what_a_coin_would():
    """By hand: of 10 images 9 to 1 is 2·(1 + 10)/2¹⁰; the published example of Fagerland et al. is 1 to 7."""
    assert differences.mcnemar_p(1, 9) == pytest.approx(2 * (1 + 10) / 1024)
    assert differences.mcnemar_p(1, 7) == pytest.approx(0.0703125)
    assert differences.mcnemar_p(5, 5) == 1.0
    assert differences.mcnemar_p(0, 0) == 1.0
    assert 0 < differences.mcnemar_p(40_000, 41_000) < 0.001


def test_the_same_answers_are_no_difference(two):
    comparison = differences.compare(*_chosen(two))

    row = comparison.rows[0]
    assert (row.key, comparison.base, comparison.images > 0) == ("accuracy", two[0].pk, True)
    assert row.values[0].difference is None
    assert row.values[1].difference == differences.Difference(0.0, 0.0, 0.0, "no_difference")
    assert (comparison.mcnemar[0].only_base, comparison.mcnemar[0].only_other, comparison.mcnemar[0].p) == (0, 0, 1.0)


def test_a_small_gain_on_few_images_is_not_called_a_win_and_a_large_one_is(two):
    first = [True] * 60 + [False] * 40
    judged.rewrite(two[0], first)
    judged.rewrite(two[1], [*first[:57], *[False] * 3, *[True] * 6, *first[66:]])  # six gained, three lost
    small = differences.compare(*_chosen(two))
    judged.rewrite(two[1], [*first[:59], False, *[True] * 20, *first[80:]])
    large = differences.compare(*_chosen(two))

    gain, again = small.rows[0].values[1].difference, large.rows[0].values[1].difference
    assert (round(gain.value, 6), gain.verdict) == (0.03, "no_difference")
    assert gain.low < 0 < gain.high
    assert (round(again.value, 6), again.verdict) == (0.19, "better")
    assert (small.mcnemar[0].only_base, small.mcnemar[0].only_other) == (3, 6)
    assert small.mcnemar[0].verdict == "no_difference"
    assert large.mcnemar[0].verdict == "better"
    assert large.mcnemar[0].both_right == 59
    assert differences.compare(*_chosen(two)) == large


def test_the_base_turns_the_difference_round(two):
    judged.rewrite(two[0], [False] * 50)
    judged.rewrite(two[1], [True] * 50)

    comparison = differences.compare(
        *differences.select_evaluations(two[0].job.owner, [evaluation.pk for evaluation in two], base=two[1].pk)
    )

    assert comparison.rows[0].values[0].difference.verdict == "worse"
    assert comparison.rows[0].values[1].difference is None
    assert comparison.mcnemar[0].evaluation == two[0].pk


@pytest.mark.long
def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """50 made-up pairs of models of 0.8 and 0.75, 300 images each; 95 % of the intervals should hold 0.05."""
    chance, held = np.random.default_rng(5), 0
    task = dataclasses.replace(TASKS["classification"], measures=TASKS["classification"].measures[:1], pairs=None)
    for trial in range(50):
        hard = chance.random(300)
        entries = [[{"right": bool(flag)} for flag in hard < share] for share in (0.75, 0.80)]
        (row,) = differences.rows_of(task, entries, [trial, 1000 + trial], 0)
        difference = row.values[1].difference
        held += difference.low <= 0.05 <= difference.high

    assert 44 <= held <= 50


@pytest.mark.long
@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_task_is_compared_by_figures_of_its_own_entries(alice, tmp_path, task):
    if task in ("instances", "tagging", "anomaly"):
        entries = {
            "instances": {"tp": 2, "fp": 1, "fn": 0},
            "tagging": {"answers": [[1, 0.9, True], [2, 0.6, False]], "missed": [3]},
            "anomaly": {"right": True},
        }[task]
        (first, *_rest) = differences.rows_of(TASKS[task], [[entries] * 3] * 2, [1, 2], 0)
        values = {"instances": 0.8, "tagging": 0.0, "anomaly": 1.0}
        assert first.values[0].value == pytest.approx(values[task])
        return
    made = judged.evaluation(alice, tmp_path, task=task)
    again = judged.judged(alice, made.model_version, made.version)

    comparison = differences.compare(*_chosen((made, again)))

    assert [row.key for row in comparison.rows] == [
        measure.key for measure in (*TASKS[task].ranked, *TASKS[task].measures, *TASKS[task].means)
    ]
    summary = results.load(made)["summary"]
    for row in comparison.rows:
        assert row.values[0].value == pytest.approx(summary.get(row.key, row.values[0].value), abs=1e-5), row.key
        assert math.isclose(row.values[0].value, row.values[1].value)
        assert row.values[1].difference.verdict == "no_difference"
    assert bool(comparison.mcnemar) == (TASKS[task].right is not None)
    if task == "detection":
        assert comparison.only_told == ["ar100", "precision", "recall", "f1"]
    if task in ("classification", "segmentation"):
        assert comparison.only_told == []


def test_the_order_of_naming_changes_nothing(two):
    judged.rewrite(two[0], [True] * 60 + [False] * 40)
    judged.rewrite(two[1], [True] * 66 + [False] * 34)

    named = differences.compare(
        *differences.select_evaluations(two[0].job.owner, [two[0].pk, two[1].pk], base=two[0].pk)
    )
    turned = differences.compare(
        *differences.select_evaluations(two[0].job.owner, [two[1].pk, two[0].pk], base=two[0].pk)
    )

    for row, again in zip(named.rows, turned.rows, strict=True):
        assert row.values[1] == again.values[0], row.key


@pytest.mark.parametrize(("images", "verdict"), [(1, "no_difference"), (29, "no_difference"), (30, "better")])
def test_few_images_never_make_a_win(two, alice, client, images, verdict):
    judged.rewrite(two[0], [False] * images)
    judged.rewrite(two[1], [True] * images)
    client.force_login(alice)

    comparison = differences.compare(*_chosen(two))
    page = client.get(
        "/evaluations/compare/?" + "&".join(f"evaluation={evaluation.pk}" for evaluation in two)
    ).content.decode()

    assert comparison.rows[0].values[1].difference.verdict == verdict
    assert ("With fewer than 30 images" in page) == (images < 30)


def test_macro_figures_of_a_classifier_are_those_counted_by_hand():
    """Class 0 twice right, once taken for 1; class 1 once right; class 2 was only answered, so it is no class here."""
    cells = ["0,0", "0,0", "0,1", "1,1", "1,2"]
    entries = [{"cells": [cell]} for cell in cells]

    values = {
        row.key: row.values[0].value for row in differences.rows_of(TASKS["classification"], [entries] * 2, [1, 2], 0)
    }

    assert values == pytest.approx(
        {"precision": (1 + 1 / 2) / 2, "recall": (2 / 3 + 1 / 2) / 2, "f1": (4 / 5 + 2 / 4) / 2}
    )


def test_means_of_many_classes_are_counted_as_those_of_few(monkeypatch):
    chance = np.random.default_rng(3)
    entries = [[{"cells": [f"{t},{a}"]} for t, a in chance.integers(0, 5, (40, 2))] for _model in "ab"]

    few = differences.rows_of(TASKS["classification"], entries, [1, 2], 0)
    monkeypatch.setattr(resampling, "MAX_CELLS", 0)
    many = differences.rows_of(TASKS["classification"], entries, [1, 2], 0)

    assert few == many
    assert len(few) == 3


def test_an_older_segmentation_is_compared_by_what_it_kept(alice, tmp_path):
    made = judged.evaluation(alice, tmp_path, task="segmentation")
    again = judged.judged(alice, made.model_version, made.version)
    path = results.folder(made) / "images.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in entry.items() if k != "pairs"}) + "\n" for entry in entries))

    comparison = differences.compare(*_chosen((made, again)))

    assert [row.key for row in comparison.rows] == ["image_miou", "image_accuracy"]
    assert comparison.only_told == ["miou", "dice", "pixel_accuracy"]


def test_what_cannot_be_compared_is_refused_all_at_once(alice, bob, two, tmp_path):
    other = judged.evaluation(alice, tmp_path / "other", task="detection")
    Evaluation.objects.filter(pk=two[1].pk).update(published_attempt=0)

    with pytest.raises(DomainError) as refused:
        differences.select_evaluations(alice, [two[0].pk, two[1].pk, other.pk])
    with pytest.raises(Invalid, match=r"Select 2 to 6 evaluations."):
        differences.select_evaluations(alice, [two[0].pk])
    with pytest.raises(NotFound):
        differences.select_evaluations(bob, [evaluation.pk for evaluation in two])
    with pytest.raises(Invalid, match=r"The baseline must be one of the compared evaluations."):
        differences.select_evaluations(alice, [two[0].pk, two[1].pk], base=other.pk)

    message = " ".join(map(str, refused.value.every))
    assert [
        phrase
        for phrase in ("no results yet", "a different task", "Compare evaluations on the same version")
        if phrase not in message
    ] == []


def test_evaluations_of_other_images_are_refused(two):
    judged.rewrite(two[0], [True] * 5)
    judged.rewrite(two[1], [True] * 4)

    with pytest.raises(Invalid, match="net_classification_v1_on_colours_classification_v1 evaluated 4"):
        differences.compare(*_chosen(two))


def test_images_on_which_they_disagree_stand_beside_each_other(two):
    judged.rewrite(two[0], [True, True, False, False])
    judged.rewrite(two[1], [True, False, True, False])
    shown = {
        show: differences.disagreements(two, show=show)[0]
        for show in ("differ", "only_first", "only_second", "both_wrong")
    }

    assert [pair[0]["path"] for pair in shown["differ"]] == ["1.png", "2.png"]
    assert [pair[1]["path"] for pair in shown["only_first"]] == ["1.png"]
    assert [pair[0]["path"] for pair in shown["only_second"]] == ["2.png"]
    assert [pair[0]["path"] for pair in shown["both_wrong"]] == ["3.png"]
    assert differences.disagreements(two, show="differ", begin=1, count=1)[1] is False
    with pytest.raises(Invalid):
        differences.disagreements(two, show="moon")


def _chosen(two):
    return differences.select_evaluations(two[0].job.owner, [evaluation.pk for evaluation in two])


def test_api_and_page_say_the_same_and_show_strangers_nothing(api, alice, bob, client, two):
    judged.rewrite(two[0], [True] * 60 + [False] * 40)
    judged.rewrite(two[1], [True] * 80 + [False] * 20)
    query = "&".join(f"evaluation={evaluation.pk}" for evaluation in two)

    answer = api.get(f"/api/v1/evaluations/comparison/?{query}").json()
    assert client.get(f"/evaluations/compare/?{query}").status_code == 302
    client.force_login(alice)
    page = client.get(f"/evaluations/compare/?{query}")
    images = client.get(f"/evaluations/compare/images/?{query}&show=only_second").content.decode()

    figure = answer["figures"][0]
    assert (figure["key"], figure["values"][1]["difference"]["verdict"]) == ("accuracy", "better")
    assert (answer["base"], answer["images"], answer["mcnemar"][0]["only_other"]) == (two[0].pk, 100, 20)
    assert page.status_code == 200
    assert "+0.200" in page.content.decode()
    assert images.count("<figure") == 12
    assert "begin=6" in images
    assert client.get(f"/evaluations/compare/?evaluation={two[0].pk}").status_code == 400
    assert client.get(f"/evaluations/compare/images/?{query}&show=moon").status_code == 400
    assert api.get(f"/api/v1/evaluations/comparison/?{query}&base=x").status_code == 400
    client.force_login(bob)
    assert client.get(f"/evaluations/compare/?{query}").status_code == 404
    assert client.get(f"/evaluations/compare/images/?{query}").status_code == 404


@pytest.mark.parametrize(
    "line",
    [
        "no JSON", "[]", "7", '{"path": "0.png"}', '{"path": "0.png", "cells": "x", "right": 1, "badness": "y"}',
        '{"path": "0.png", "cells": ["0,999999999999"], "right": true, "badness": 0, "truth": 1, "answers": [[1, 1]]}',
        '{"path": "0.png", "cells": ["-1,-1"], "right": true, "badness": 0, "truth": 1, "answers": 5}',
    ],
)  # fmt: skip
def test_whatever_stands_among_the_results_breaks_no_page(two, alice, client, line):
    for evaluation in two:
        (results.folder(evaluation) / "images.jsonl").write_text(f"{line}\n")
    query = "&".join(f"evaluation={evaluation.pk}" for evaluation in two)
    client.force_login(alice)

    answers = [client.get(f"/evaluations/compare/{part}?{query}").status_code for part in ("", "images/")]
    answers.append(client.get(f"/api/v1/evaluations/comparison/?{query}").status_code)

    assert set(answers) <= {200, 400}
