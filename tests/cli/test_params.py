"""`aip params` against the real API."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from tests.factories import work
from training.runs.models import ParameterSet, TrainingJob

pytestmark = pytest.mark.django_db


def test_params_verbs_save_change_show_and_use_a_set(real_aip, alice, capfd):
    work.node(cores=4)
    cells = factory.version(alice, "cells")
    codes = [
        real_aip(alice, "params", "save", "gentle", "--preset", "detect", "-p", "lr=0.005", "--visibility", "public"),
        real_aip(alice, "params", "change", "gentle", "-p", "epochs=2"),
        real_aip(alice, "params", "versions", "gentle"),
        real_aip(alice, "train", "submit", "a", "--data", cells.pk, "--params", "gentle:1"),
    ]
    printed = capfd.readouterr()

    row = ParameterSet.objects.get()
    assert codes == [0, 0, 0, 0], printed.err
    assert (row.visibility, row.number, row.params) == ("public", 2, {"lr": 0.005, "epochs": 2.0})
    assert TrainingJob.objects.get().set_use.name == "gentle v1"
    assert "now at version 2" in printed.err
    real_aip(alice, "params", "delete", "gentle")
    assert not ParameterSet.objects.exists()
