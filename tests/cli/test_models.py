"""`aip models` against the real API."""

from __future__ import annotations

import pytest

from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def test_cli_lists_models_with_the_first_of_their_figures(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)
    type(version).objects.filter(pk=version.pk).update(
        metrics={"val/ap": 0.54321, "val/ap50": 0.9, "val/ap75": 0.25, "val/loss": 1.0}
    )

    assert real_aip(alice, "models", "list") == 0

    printed = capfd.readouterr().out
    assert "val/ap 0.543, val/ap50 0.900, val/ap75 0.250" in printed
    assert "val/loss" not in printed
