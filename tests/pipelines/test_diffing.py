"""What differs between two versions of a pipeline."""

import copy
import json

from inference.pipelines import diffing
from tests.pipelines.specs import EXAMPLE


def changed(change):
    new = copy.deepcopy(EXAMPLE)
    change(new)
    return [(str(row.what), row.step, row.name, row.before, row.after) for row in diffing.diff(EXAMPLE, new)]


def test_every_kind_of_change_is_told_by_itself():
    def change(new):
        new["parameters"]["preset"]["default"] = "detect"
        new["steps"]["train"]["with"]["params"] = {"epochs": 5}
        new["steps"]["judge"]["from"]["model"] = "cells.model"
        new["steps"]["serve"]["retries"] = 2
        new["steps"]["better"]["kind"] = "condition"
        new["steps"]["more"] = {"kind": "items"}
        del new["steps"]["tell"]

    assert changed(change) == [
        ("default", "", "preset", "classify_small", "detect"),
        ("kind", "better", "kind", "gate", "condition"),
        ("rewired", "judge", "model", "train.model", "cells.model"),
        ("added", "more", "items", None, None),
        ("option", "serve", "retries", None, 2),
        ("removed", "tell", "notify", None, None),
        ("parameter", "train", "params", {"epochs": 3}, {"epochs": 5}),
    ]
    assert changed(lambda new: None) == []


def test_a_renamed_chain_is_no_removal_and_rewires_nothing():
    text = json.dumps(EXAMPLE).replace('"train"', '"learn"').replace('"train.', '"learn.')
    new = json.loads(text.replace('"judge"', '"exam"').replace('"judge.', '"exam.'))
    new["steps"]["learn"]["kind"] = "train"

    changes = diffing.diff(EXAMPLE, new)

    assert [diffing.to_sentence(change) for change in changes] == [
        "judge was renamed to exam.",
        "train was renamed to learn.",
    ]
    assert diffing.renames(EXAMPLE, new) == {"learn": "train", "exam": "judge"}


def test_secrets_are_never_shown():
    def change(new):
        new["steps"]["tell"]["with"] = {
            "token": "t0ps3cret", "pin": "t0ps3cret", "headers": [{"Authorization": "t0ps3cret", "X": "1"}],
        }  # fmt: skip

    new = copy.deepcopy(EXAMPLE)
    change(new)
    changes = diffing.diff(EXAMPLE, new, secret=lambda kind, name: (kind, name) == ("notify", "pin"))

    assert "t0ps3cret" not in json.dumps([row.as_json() for row in changes]) + "".join(
        map(diffing.to_sentence, changes)
    )
    assert [row.name for row in changes] == ["headers", "pin", "text", "token"]
    assert changes[0].after == [{"Authorization": diffing.HIDDEN, "X": "1"}]
