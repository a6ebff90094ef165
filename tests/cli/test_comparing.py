"""`aip train compare` against the real API."""

from __future__ import annotations

import json

import pytest

from tests.factories import curves, work
from tests.factories import training as factory

pytestmark = pytest.mark.django_db


def test_cli_puts_trainings_beside_each_other(real_aip, alice, capfd):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    for name, rate in (("slow", 0.01), ("fast", 0.1)):
        made = factory.training(alice, data=data, name=name, state="running", preset="classify", params={"lr": rate})
        curves.report(made.job.attempts.get(), "val/accuracy", [(1, rate), (2, 0.5)])

    assert real_aip(alice, "train", "compare", "slow", "fast") == 0
    printed = capfd.readouterr().out.splitlines()
    assert real_aip(alice, "train", "compare", "slow", "fast", "--json") == 0
    found = json.loads(capfd.readouterr().out)

    assert printed[0].split() == ["SLOW", "FAST"]
    assert printed[1].split() == ["lr", "0.01", "0.1"]
    assert printed[2].split() == ["val/accuracy", "0.5", "(0.01", "…", "0.5)", "0.5", "(0.1", "…", "0.5)"]
    assert [run["name"] for run in found["runs"]] == ["slow", "fast"]


def test_cli_cuts_networks_of_ones_own(real_aip, alice, capfd):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    for name in ("one", "two"):
        text = f"def build(classes):\n    return {name!r}\n" * 100
        own = {"architecture": "own", "network": text}
        factory.training(alice, data=data, name=name, state="running", preset="classify", params=own)

    assert real_aip(alice, "train", "compare", "one", "two") == 0

    assert max(map(len, capfd.readouterr().out.splitlines())) < 200
