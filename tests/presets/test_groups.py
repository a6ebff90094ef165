"""Folds that know groups: no group is divided, every part gets its share of each class."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

from inference.kit.samples import learned
from tests.cases import case_table
from tests.presets import versions
from training.presets import data, groups
from training.presets.run import Refused


def worst_share(numbers: list[int], labels: list[int], count: int) -> float:
    """How far the share of a class in a part is from what it should be, at most."""
    total = Counter(labels)
    there = Counter(zip(numbers, labels, strict=True))
    return max(abs(there[part, kind] / total[kind] - 1 / count) for part in range(1, count + 1) for kind in total)


def patients(seed: int) -> tuple[list[str], list[int]]:
    """Images of some eighty patients, a few of whom have many; most have one finding, a rare one among them."""
    chance, names, labels = random.Random(seed), [], []
    for patient in range(80):
        usual = chance.choices((0, 1, 2), (6, 3, 1))[0]
        for _ in range(min(40, int(chance.paretovariate(1)) + 1)):
            names.append(f"p{patient}")
            labels.append(usual if chance.random() < 0.8 else chance.randrange(3))
    return names, labels


@given(
    images=st.lists(st.tuples(st.sampled_from("abcdefgh"), st.lists(st.integers(1, 4), max_size=3)), min_size=1),
    count=st.integers(2, 5),
)
def test_parts_divide_no_group_leave_none_empty_and_are_always_the_same(images, count):
    try:
        numbers = groups.parts(images, count)
    except groups.NoGroups:
        return
    parts_of = {
        group: {n for (name, _), n in zip(images, numbers, strict=True) if name == group} for group, _ in images
    }

    assert {len(found) for found in parts_of.values()} == {1}
    assert set(numbers) == set(range(1, count + 1))
    assert groups.parts(images, count) == numbers


@case_table("seed", range(5))
@case_table("count", [3, 5])
def test_parts_are_as_balanced_as_those_of_scikit_learn(seed, count):
    names, labels = patients(seed)

    numbers = groups.parts([(name, [label]) for name, label in zip(names, labels, strict=True)], count)

    theirs = np.zeros(len(names), int)
    split = StratifiedGroupKFold(count).split(np.zeros(len(names)), labels, names)
    for part, (_learn, score) in enumerate(split, 1):
        theirs[score] = part
    assert worst_share(numbers, labels, count) <= worst_share(theirs.tolist(), labels, count) + 0.01


@pytest.mark.parametrize(
    ("group_by", "group"),
    [("", "train/p07/a_3.png"), ("folder", "train/p07"), (r"p\d+", "p07"), (r"/(\w)_\d", "a"), ("^(\\w+)/", "train")],
)
def test_group_is_the_folder_or_what_is_found_in_the_path(group_by, group):
    assert groups.name_for("train/p07/a_3.png", group_by) == group


@pytest.mark.parametrize(
    ("group_by", "says"), [("q", "finds nothing in train/p07/a_3"), ("(", "no regular"), ("x|(y)|t", "finds nothing")]
)
def test_expression_that_names_no_group_is_refused(group_by, says):
    with pytest.raises(groups.NoGroups, match=says):
        groups.name_for("train/p07/a_3.png", group_by)


@pytest.mark.parametrize("group_by", ["", "folder", r"p\d+", "é(.)"])
def test_groups_of_many_are_those_of_each(group_by):
    paths = ["p07/é_3.png", "p08/ét\"'\n.png"]

    assert groups.names(paths, group_by) == [groups.name_for(path, group_by) for path in paths]


@pytest.mark.parametrize(
    ("group_by", "says"),
    [("q", "finds nothing in train/p07"), ("(", "no regular"), ("(?:a+)+$|png", "more than 1 seconds")],
)
def test_expression_that_finds_no_groups_or_takes_for_ever_is_refused(monkeypatch, group_by, says):
    monkeypatch.setattr(groups, "MAX_DURATION_S", 1)

    with pytest.raises(groups.NoGroups, match=says):
        groups.names(["train/p07.png", "a" * 60 + ".png"], group_by)


def version(folder: Path, *, shots: int = 3) -> data.Version:
    """Twelve patients with some photographs each; the patient's number is in the name."""
    images = [
        data.Image(f"{patient % 2}/p{patient:02d}_{shot}.png", "", 8, 8, "train", patient % 2)
        for patient in range(12)
        for shot in range(shots)
    ]
    return data.Version(folder, "patients", [{"id": 0, "name": "ill"}, {"id": 1, "name": "well"}], images)


def params(**more: object) -> dict[str, object]:
    return {"train_splits": "train", "eval_split": "", "folds": 0, "fold": 0, "group_by": "", **more}


def test_folds_of_patients_score_each_once_and_never_on_what_was_learned_from(tmp_path):
    made = version(tmp_path)
    patient = [image.path.split("/")[1][:3] for image in made.images]

    split = [data.split(made, range(36), params(folds=3, fold=n, group_by=r"p\d+")) for n in (1, 2, 3)]
    plain = [data.split(made, range(36), params(folds=3, fold=n)) for n in (1, 2, 3)]

    for learn, score, name in split:
        assert not {patient[row] for row in learn} & {patient[row] for row in score}
        assert Counter(made.images[row].label for row in score) == {0: 6, 1: 6}
        assert name.endswith("whole groups")
    assert sorted(row for _learn, score, _name in split for row in score) == list(range(36))
    assert any({patient[row] for row in learn} & {patient[row] for row in score} for learn, score, _name in plain)


def test_tenth_that_is_held_out_takes_whole_groups(tmp_path):
    made = version(tmp_path)

    learn, score, _name = data.split(made, range(36), params(group_by=r"p\d+"))

    patient = [image.path.split("/")[1][:3] for image in made.images]
    assert len(score) % 3 == 0 < len(score)
    assert not {patient[row] for row in learn} & {patient[row] for row in score}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"folds": 5, "group_by": "folder"}, "2 groups are too few for 5 folds"),
        ({"folds": 2, "group_by": "folder"}, "Every class lies in one group alone"),
        ({"folds": 2, "group_by": "patient"}, "finds nothing in 0/p00_0.png"),
        ({"group_by": "png"}, "All images belong to groups that would be held out"),
    ],
)
def test_groups_by_which_nothing_could_be_learned_are_refused(tmp_path, more, says):
    with pytest.raises(Refused, match=says):
        data.split(version(tmp_path), range(36), params(**more))


def test_folds_of_drawn_objects_balance_their_classes_and_the_evaluator_knows_them(tmp_path):
    sizes = {"width": 9, "height": 9, "split": "train", "label": None}
    images = [{"path": f"{n:02d}/{k}.png", "sha256": f"{n}-{k}", **sizes} for n in range(12) for k in range(2)]
    shapes = [{"image": n, "class": n // 2 % 3, "bbox": [1, 1, 4, 4]} for n in range(24)]
    root = versions.write(tmp_path, task="detection", classes=["a", "b", "c"], images=images, shapes=shapes)
    made = data.read(root)

    for fold in (1, 2):
        learn, score, _name = data.split(made, range(24), params(folds=2, fold=fold, group_by="folder"))
        assert Counter(row // 2 % 3 for row in score) == {0: 4, 1: 4, 2: 4}
        known = learned.keys(root, train="train", evaluate="", folds=2, fold=fold, group_by="folder")
        assert known == {images[row]["sha256"] for row in learn}
