"""From a model's page to a training that goes on from it, in a real browser."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from datasets.models import DatasetVersion
from inference.registry.models import Model, ModelVersion
from tests.factories import training as factory
from tests.factories import work
from training.runs.models import TrainingJob

pytestmark = pytest.mark.long


@pytest.fixture
def model(alice, live_server):
    """A detector of another network than the usual one, as a training leaves it."""
    work.node(cores=4)
    factory.version(alice, "cells")
    version = ModelVersion.objects.create(
        model=Model.objects.create(owner=alice, name="cells"), number=1, task="detection", preset="detect",
        source="training", files=[{"name": "model.safetensors", "size": 7}],
        params={"architecture": "lite0-scratch", "head_width": 48, "lr": 0.5},
    )  # fmt: skip
    version.path.mkdir(parents=True)
    (version.path / "model.safetensors").write_bytes(b"weights")
    return version


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 390)], ids=["light", "dark"])
def test_model_is_fine_tuned_from_its_page(open_as, alice, accessible, fits, model, dark, width):
    page = open_as(alice, dark=dark, width=width)
    page.goto(reverse("inference:model-detail", args=[model.model_id]))
    page.get_by_role("link", name="Fine-tune").click()

    page.wait_for_url(re.compile(r"/training/new/\?weights="))
    field = {name: page.locator(f"[name=detect__{name}]") for name in ("weights", "architecture", "head_width", "lr")}
    assert field["weights"].input_value() == "alice/cells v1"
    assert (field["architecture"].input_value(), field["head_width"].input_value()) == ("lite0-scratch", "48")
    assert field["lr"].input_value() != "0.5"
    accessible(page)
    fits(page)
    page.locator("[name=version]").select_option(str(DatasetVersion.objects.get().pk))
    page.get_by_role("button", name="Start training").click()

    page.wait_for_url(re.compile(r"/training/\d+/$"))
    training = TrainingJob.objects.get()
    assert {name: training.params[name] for name in ("weights", "architecture", "head_width")} == {
        "weights": "alice/cells v1", "architecture": "lite0-scratch", "head_width": 48,
    }  # fmt: skip
    facts = page.locator("section[aria-labelledby=h-facts]")
    expect(facts.get_by_text("alice/cells v1", exact=True)).to_be_visible()
    accessible(page)
    fits(page)
