"""What pages and reports of evaluations say, from counts alone: curves, names, figures that are left out."""

import pytest

from inference.evaluation.presentation import charts, curves, tiles
from inference.evaluation.presentation.names import parameter_word, shortened

CLASSES = [
    {"id": 7, "name": "red", "truths": 4, "tp": [4, 3, 1, 0], "fp": [4, 1, 0, 0]},
    {"id": 8, "name": "green", "truths": 2, "tp": [2, 2, 2, 0], "fp": [6, 2, 0, 0]},
]
CONTENT = {"thresholds": [0, 0.3, 0.6, 0.9], "classes": CLASSES, "summary": {"threshold": 0.6}}


def test_curve_of_all_classes_goes_through_the_point_of_every_threshold():
    means = curves.means(CONTENT)

    # tests/scripts/rates.test.js draws these
    assert [(point["recall"], point["precision"], point["answered"]) for point in means] == [
        (1.0, 0.375, 2), (0.875, 0.625, 2), (0.625, 1.0, 2), (0.0, 0.0, 0),
    ]  # fmt: skip
    (_title, by_recall), (_other, by_score) = curves.draw(CONTENT)
    assert len(by_recall.lines[0].points.split()) == 3  # nothing is answered at the highest, and nothing drawn
    assert len(by_score.lines[0].points.split()) == 4
    assert curves.means({"classes": CLASSES}) == curves.draw({"summary": {}}) == []


def test_means_at_the_threshold_of_the_evaluation_are_those_of_its_summary():
    stored = {"threshold": 0.0, "precision": 0.976, "recall": 0.9761, "f1": 0.975}  # as a classifier's

    first, *others = curves.means(CONTENT | {"summary": stored})

    assert {name: first[name] for name in tiles.RATES} == {name: stored[name] for name in tiles.RATES}
    assert others == curves.means(CONTENT)[1:]


@pytest.mark.parametrize(("top", "labels"), [(19, "0 5 10 15"), (0.3, "0 0.1 0.2 0.3"), (3e6, "0 1e+06 2e+06 3e+06")])
def test_axes_have_round_numbers(top, labels):
    assert [word for _value, word in charts.count_ticks(top)] == labels.split()


def test_class_without_answers_says_nothing_about_precision():
    silent = {"id": 9, "name": "blue", "truths": 3, "tp": [3, 0, 0, 0], "fp": [0, 0, 0, 0]}
    content = CONTENT | {"classes": [*CLASSES, silent]}

    at_best = curves.means(content)[2]
    assert (at_best["precision"], at_best["recall"]) == (1.0, pytest.approx((0.25 + 1 + 0) / 3))
    assert curves.unanswered(content) == {9}
    matrix = {"confusion": {"matrix": [[3, 0], [1, 0]]}, "classes": [{"id": 1}, {"id": 2}]}
    assert curves.unanswered(matrix) == {2}


def test_names_beside_each_other_lose_what_they_share():
    long = ["bottles_fcos_v1_on_bottling_line_v3", "bottles_fcos_v2_on_bottling_line_v3", "bottles_fcos_v12_on_x"]
    assert shortened(long) == ["… v1_on_bottling_line_v3", "… v2_on_bottling_line_v3", "… v12_on_x"]
    assert shortened(["net_v1_on_colours_detection", "other_v2_on_colours_detection"]) == ["net_v1 …", "other_v2 …"]
    assert shortened(["net v1", "net v2"]) == ["net v1", "net v2"]
    same = ["a rather long name of an evaluation", "a rather long name of an evaluation"]
    assert shortened(same) == ["… evaluation"] * 2  # short_names adds their numbers


def test_recall_of_the_five_best_is_left_out_where_it_says_nothing():
    summary = {"accuracy": 0.5, "recall_5": 1.0}
    few, many = ({"summary": summary, "classes": [{}] * count} for count in (5, 6))

    assert "recall_5" not in {tile["key"] for tile in tiles.tiles("classification", few)}
    assert "5 classes or fewer" in tiles.left_out("classification", few)
    assert "recall_5" in {tile["key"] for tile in tiles.tiles("classification", many)}
    assert tiles.left_out("classification", many) == ""


def test_parameters_have_the_words_of_the_form_and_those_of_a_script_their_own():
    assert [parameter_word(name) for name in ("batch", "name", "lr")] == ["Images per batch", "name", "lr"]
