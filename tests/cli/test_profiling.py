"""`aip train profile`: of own code what its script noted itself, of a preset what a short job finds."""

from __future__ import annotations

import json

import pytest

from tests.factories import training as factory
from tests.factories import work
from tests.factories.profiles import of_a_script, wrote


@pytest.fixture
def own(alice, tmp_path):
    work.node(cores=4)
    code = factory.code(alice, tmp_path / "mine", train="print(1)\n")
    return factory.training(alice, name="own", code=code, start_file="train.py", state="running")


def test_profile_command_prints_what_a_script_noted_itself(real_aip, alice, own, capsys):
    wrote(own, of_a_script())

    assert real_aip(alice, "train", "profile", "own") == 0
    said = capsys.readouterr().out
    assert real_aip(alice, "train", "profile", own.pk, "--json") == 0
    about = json.loads(capsys.readouterr().out)

    assert said.startswith("100.0 ms per step on cpu: wait 60 %, forward 10 %, backward 20 %, other 10 %\n")
    assert "other, augment 6 %" in said
    assert "aten::op0" in said
    assert "- 60 % of a step is spent waiting for the next batch: the DataLoader has num_workers=0" in said
    assert about["advice"][0]["code"] == "no_workers"


def test_profile_command_without_torch_prints_no_empty_table(real_aip, alice, own, capsys):
    wrote(own, of_a_script(operations=[], of_operations=0, known=["wait"]))

    assert real_aip(alice, "train", "profile", own.pk) == 0
    assert "OPERATION" not in capsys.readouterr().out


def test_profile_command_says_what_to_write_where_a_script_noted_nothing(real_aip, alice, own, capsys):
    assert real_aip(alice, "train", "profile", own.pk) == 5
    said = capsys.readouterr().err
    assert "`from aip import profile`" in said
    assert "`for batch in profile(loader):`" in said
