"""`aip train folds` against the real API."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from tests.factories import work
from training.models import TrainingJob

pytestmark = pytest.mark.django_db


def test_cli_lists_the_folds(real_aip, alice, capfd):
    work.node(cores=4)
    factory.training(alice, data=factory.version(alice, "cells"), preset="detect", params={"folds": 2})
    first = TrainingJob.objects.order_by("pk")[0]
    factory.move(first, "succeeded")
    TrainingJob.objects.filter(pk=first.pk).update(metrics={"val/ap50": 0.8})

    assert real_aip(alice, "train", "folds", first.pk) == 0

    printed = capfd.readouterr().out
    assert "succeeded" in printed
    assert "val/ap50: 0.8 over 1 of the folds" in printed
