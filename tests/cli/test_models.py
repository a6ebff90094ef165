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


def test_cli_moves_stage_and_alias_and_finds_versions_by_alias(real_aip, alice, tmp_path, capfd):
    version = factory.model_version(alice, tmp_path)
    factory.model_version(alice, tmp_path, model=version.model)

    assert real_aip(alice, "model", "alias", "cells:1", "champion") == 0
    assert real_aip(alice, "model", "stage", "cells@champion", "approved", "--reason", "It is good.") == 0
    assert real_aip(alice, "model", "list", "--stage", "approved", "--alias", "champion") == 0
    assert real_aip(alice, "model", "history", "cells") == 0
    assert real_aip(alice, "model", "stage", "cells@nobody", "approved", "--reason", "x") == 5
    assert real_aip(alice, "model", "alias", "cells", "champion", "--remove") == 0

    printed = capfd.readouterr()
    assert "champion=v1" in printed.out
    assert "why=It is good." in printed.out
    assert "Model cells has no alias nobody. It has: champion." in printed.err
    version.refresh_from_db()
    assert version.stage == "approved"
    assert not version.aliases.exists()
