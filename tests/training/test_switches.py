"""What the additional parameters do: cards, the line before the run, waits, steps in the log."""

from __future__ import annotations

import dataclasses
import runpy
import sys
import time
from pathlib import Path

import pytest
from django.urls import reverse

from tests.factories import curves, work
from tests.factories import training as factory
from tests.presets import versions
from tests.presets.jobs import Job as Run
from training.admin import DefaultsForm
from training.presets.catalog import PRESETS
from training.programs import program
from training.runs import extra_options
from training.runs.drafts import TrainingRequest
from training.runs.models import TrainingDefaults

START = Path(program.__file__).with_name("aip_start.py")
SMALL = {"budget_minutes": 0, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 16, "net_width": 4}


def test_hint_stands_five_seconds_before_the_run_and_the_delay_after_it(tmp_path, monkeypatch, capfd):
    """Clock and program write to one list, so that their order is seen."""
    (tmp_path / "mine.py").write_text("print('works', flush=True)\n")
    happened = []
    monkeypatch.setattr(time, "sleep", lambda seconds: happened.append((seconds, capfd.readouterr().out)))
    monkeypatch.setattr(sys, "argv", ["aip_start.py", str(tmp_path / "mine.py")])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("AIP_HINT", "two words")
    monkeypatch.setenv("AIP_CLOSE_DELAY_S", "7")
    monkeypatch.delenv("AIP_HINT_S", raising=False)

    runpy.run_path(str(START), run_name="__main__")

    assert happened == [(5.0, "two words\n"), (7.0, "works\n")]


def test_delay_is_kept_where_the_program_fails(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)\n")
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(sys, "argv", ["aip_start.py", str(tmp_path / "mine.py")])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("AIP_CLOSE_DELAY_S", "2")

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(START), run_name="__main__")

    assert (ended.value.code, waits) == (3, [2.0])


def test_cards_named_are_the_cards_requested(alice, db, cells):
    work.node(gpus=4)

    training = factory.training(alice, data=cells, extra="-gpu:0,2,3", gpus_per_node=None)

    assert (training.job.gpus_per_node, training.job.nodes) == (3, 1)


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    return versions.shades(tmp_path_factory.mktemp("switches") / "shades")


@pytest.mark.proof
def test_steps_are_as_rare_and_as_visible_as_requested(tmp_path, shades):
    """-keep:250 is at most four steps a second; -ShowStep shows each, -NoStep none, neither one each 30 s."""
    logs, took = {}, {}
    for name, params in {
        "plain": {}, "shown": {"show_steps": True}, "none": {"no_steps": True, "keep_ms": 250},
    }.items():  # fmt: skip
        began = time.monotonic()
        code, logs[name] = Run(tmp_path / name, shades, "classify", {**SMALL, **params, "steps": 12}).run()
        took[name] = time.monotonic() - began
        assert code == 0, logs[name]

    lines = {name: [line for line in log.splitlines() if line.startswith("step ")] for name, log in logs.items()}
    assert [len(lines[name]) for name in ("shown", "none")] == [12, 0]
    assert len(lines["plain"]) <= took["plain"] / 30 + 1
    assert took["none"] >= 12 * 0.25


def test_training_without_additional_parameters_takes_those_of_the_administrator(alice, as_alice, machine, cells):
    TrainingDefaults.objects.create(extra="-keep:20 -NoStep")

    silent = factory.training(alice, data=cells)
    own = factory.training(alice, data=cells, name="own", extra="-ShowStep")

    assert (silent.extra, silent.params["keep_ms"], silent.params["no_steps"]) == (
        {"keep_ms": 20, "no_step": True}, 20, True,
    )  # fmt: skip
    assert (own.extra, own.params["keep_ms"]) == ({"show_step": True}, 0)
    assert b"-keep:20 -NoStep" in as_alice.get(reverse("training:job-submit")).content


def test_standing_parameters_leave_out_what_a_preset_does_not_know(alice, machine, cells, monkeypatch):
    plain = dataclasses.replace(PRESETS["detect"], parameters=PRESETS["detect"].parameters[:2])
    monkeypatch.setitem(PRESETS, "detect", plain)
    TrainingDefaults.objects.create(extra="-keep:20 -CloseDelay:1")

    training = factory.training(alice, data=cells)

    assert (training.extra, set(training.params)) == ({"close_delay_s": 1}, {"architecture", "budget_minutes"})


@pytest.mark.parametrize(
    ("line", "right"), [("-keep:20", True), ("", True), ("-gpu:0", False), ("-debug", False), ("-ShowBatch", False)]
)
def test_administrator_cannot_set_what_no_training_could_take(db, line, right):
    assert DefaultsForm({"extra": line}).is_valid() == right


def test_every_preset_takes_every_switch(alice, machine, cells):
    line = "-keep:1 -NoStep -hint:x -CloseDelay:1"

    assert extra_options.written(factory.training(alice, data=cells, extra=line).extra) == (
        "-hint:x -CloseDelay:1 -keep:1 -NoStep"
    )
    assert TrainingRequest().extra == ""


def test_list_shows_the_newest_loss_and_rate_of_every_program(alice, as_alice, api, machine, cells, code):
    preset = factory.training(alice, data=cells, state="running", name="a")
    own = factory.training(alice, data=cells, state="running", name="b", code=code, start_file="train.py")
    silent = factory.training(alice, data=cells, name="c")
    for training, points in ((preset, {"train/loss": (0.9, 0.25), "train/lr": (0.1, 0.003)}), (own, {"loss": (3, 2)})):
        attempt = training.job.attempts.get()
        for key, values in points.items():
            curves.report(attempt, key, enumerate(values))

    rows = {row["name"]: (row["loss"], row["lr"]) for row in api.get("/api/v1/training/jobs/").json()["results"]}
    page = as_alice.get("/training/").content.decode()

    assert rows == {"a": (0.25, 0.003), "b": (2.0, None), "c": (None, None)}
    assert "loss 0.25 · rate 0.003" in page
    assert silent.metrics == {}
