"""Notes of the evaluator on its page, in the reader's language."""

from __future__ import annotations

import pytest
from django.utils import translation

from inference.evaluation import notes
from inference.kit.model_io.spec import ModelClass
from inference.kit.samples import ground_truth


def test_every_note_about_classes_is_said_in_the_readers_language():
    _mapping, written = ground_truth.match_classes(
        [ModelClass(0, "red"), ModelClass(1, "pink")], [ModelClass(7, "red"), ModelClass(8, "100 % blue")]
    )

    with translation.override("zh-hans"):
        sentences = [notes.translate(note) for note in written]

    assert sentences == ["数据集中没有模型的类别“pink”；其预测已忽略。", "模型不认识类别“100 % blue”。"]
    assert [notes.translate(note) for note in written] == written


@pytest.mark.parametrize("note", ["", "something else", "The model does not have the class “"])
def test_notes_that_nobody_knows_stay_as_they_are(note):
    assert notes.translate(note) == note


def test_notes_of_earlier_versions_are_shown_in_the_present_wording():
    earlier = {
        "The model's class “pink” is not in the dataset; its answers are left out.": (
            "The class “pink” of the model is not in the dataset; its predictions are ignored."
        ),
        "The model does not know the class “blue”.": "The model does not have the class “blue”.",
        "a.png cannot be read and was left out.": "a.png cannot be read and was skipped.",
    }

    assert [notes.translate(note) for note in earlier] == list(earlier.values())
