"""`aip models compare` against the real API."""

from __future__ import annotations

import json

import pytest

from inference.registry.models import ModelVersion
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def test_terminal_puts_versions_beside_each_other(real_aip, alice, tmp_path, capfd):
    first = factory.model_version(alice, tmp_path / "1")
    second = factory.model_version(alice, tmp_path / "2", model=first.model)
    ModelVersion.objects.filter(pk=first.pk).update(metrics={"ap50": 0.8})
    ModelVersion.objects.filter(pk=second.pk).update(metrics={"ap50": 0.85})

    assert real_aip(alice, "models", "compare", first.model.name) == 0
    printed = capfd.readouterr().out.splitlines()
    assert real_aip(alice, "models", "compare", first.model.name, "--version", 1, "--json") == 0
    found = json.loads(capfd.readouterr().out)

    assert printed[0].split() == ["V2", "V1"]
    assert any(line.split() == ["ap50", "0.85", "(+0.05)", "0.8"] for line in printed)
    assert found["versions"] == [1]
