"""What differs between two versions of a pipeline."""

import copy
import json

from inference.pipelines import diffing
from tests.pipelines.specs import EXAMPLE


def changed(change):
    new = copy.deepcopy(EXAMPLE)
    change(new)
    return [(str(one.what), one.step, one.name, one.before, one.after) for one in diffing.diff(EXAMPLE, new)]


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

    told = diffing.diff(EXAMPLE, new)

    assert [diffing.to_sentence(one) for one in told] == ["judge is now called exam.", "train is now called learn."]
    assert diffing.renames(EXAMPLE, new) == {"learn": "train", "exam": "judge"}


def test_secrets_are_never_shown():
    def change(new):
        new["steps"]["tell"]["with"] = {
            "token": "t0ps3cret", "pin": "t0ps3cret", "headers": [{"Authorization": "t0ps3cret", "X": "1"}],
        }  # fmt: skip

    new = copy.deepcopy(EXAMPLE)
    change(new)
    told = diffing.diff(EXAMPLE, new, secret=lambda kind, name: (kind, name) == ("notify", "pin"))

    assert "t0ps3cret" not in json.dumps([one.as_json() for one in told]) + "".join(map(diffing.to_sentence, told))
    assert [one.name for one in told] == ["headers", "pin", "text", "token"]
    assert told[0].after == [{"Authorization": diffing.HIDDEN, "X": "1"}]
