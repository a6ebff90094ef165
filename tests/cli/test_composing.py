"""`aip models compose` against the real API."""

from __future__ import annotations

import json

import pytest

from inference.kit.models import model_json
from inference.registry.models import ModelVersion
from tests.factories import models as factory

pytestmark = pytest.mark.django_db


def test_terminal_composes_versions(real_aip, alice, tmp_path, capfd):
    for name in ("one", "two"):
        factory.model_version(alice, tmp_path, name=name)
    factory.model_version(alice, tmp_path, name="kinds", task="classification")

    assert real_aip(alice, "models", "compose", "ensemble", "one", "two:1", "--weights", "3,1", "--name", "both") == 0
    printed = capfd.readouterr()
    words = ("models", "compose", "chain", "one", "kinds", "--only", "red", "--min-score", "0.5", "--json")
    assert real_aip(alice, *words) == 0
    made = json.loads(capfd.readouterr().out)

    assert "both v1 combines 2 versions." in printed.out + printed.err
    both = ModelVersion.objects.get(model__name="both")
    assert [part.weight for part in both.parts.all()] == [3.0, 1.0]
    graph = model_json.load(ModelVersion.objects.get(pk=made["id"]).path).graph
    assert (graph.kind, graph.only, graph.min_score) == ("chain", ("red",), 0.5)


def test_terminal_says_why_versions_do_not_fit(real_aip, alice, tmp_path, capfd):
    factory.model_version(alice, tmp_path, name="one")
    factory.model_version(alice, tmp_path, name="kinds", task="classification")

    assert real_aip(alice, "models", "compose", "ensemble", "one", "kinds") != 0

    assert "All parts of an ensemble must have the same task" in capfd.readouterr().err
