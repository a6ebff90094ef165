"""Upload and train in one act, and parameter sets, as a person does both."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from datasets.services import imports
from tests.datasets.helpers import zipped
from tests.factories import datasets as pictures
from tests.factories import training as factory
from tests.factories import work
from training.runs import parameter_sets, planned
from training.runs.models import PlannedTraining, TrainingJob


@pytest.fixture
def machine(transactional_db):
    return work.node("node1", cores=4)


def test_archive_dropped_on_a_new_training_is_trained_on_by_itself(open_as, alice, machine, accessible, fits, shot):
    names = {f"{split}/{name}/{i}.png": pictures.picture(shade=20 * i + 9 * len(split + name))
             for split in ("train", "val") for name in ("cat", "horse") for i in range(3)}  # fmt: skip
    factory.version(alice, "cells")
    page = open_as(alice)
    page.goto("/training/new/?preset=classify")
    page.get_by_label("Dataset", exact=True).select_option(index=1)
    expect(page.locator(".training-unfit")).to_be_visible()
    page.get_by_text("Upload new data").click()
    page.locator("[data-file]").set_input_files(
        {"name": "animals.zip", "mimeType": "application/zip", "buffer": zipped(names)}
    )
    expect(page.get_by_text("The upload is complete.")).to_be_visible()
    expect(page.locator("#id_version")).to_have_value("")  # the new data takes its place
    expect(page.locator(".training-unfit")).to_have_count(0)
    expect(page.locator("input[name=preset]:checked")).to_have_value("classify")
    shot(page, "training-upload")
    accessible(page)
    page.get_by_role("button", name="Start training").click()

    expect(page.get_by_text("The training starts automatically after the data is imported.")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, "training-planned")
    row = PlannedTraining.objects.get()
    imports.run(row.data_import_id)
    planned.begin_due()
    expect(page).to_have_url(re.compile(rf"/training/{TrainingJob.objects.get().pk}/$"))


def test_parameter_set_is_looked_at_and_filled_in(open_as, alice, machine, accessible, fits, shot):
    factory.version(alice, "cells")
    factory.version(alice, "digits", task="classification")
    row = parameter_sets.save(user=alice, name="gentle", preset="detect", params={"lr": 0.005, "epochs": 3.0})
    parameter_sets.save(user=alice, name="gentle", preset="detect", params={"lr": 0.002}, existing=row)
    page = open_as(alice)
    page.goto("/training/params/")
    accessible(page)
    page.get_by_role("link", name="gentle").click()
    expect(page.get_by_role("heading", name="Changes in version 2")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, "parameter-set")

    page.goto("/training/new/")
    page.locator("summary", has_text="Start from").click()
    accessible(page)
    page.keyboard.type("gent")
    expect(page.locator(".start-from .menu-item:visible", has_text="gentle v2")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Started from gentle v2.")).to_be_visible()
    expect(page.locator("[data-of=detect] summary")).to_contain_text("1 changed")
    accessible(page)
    shot(page, "training-from-set")
    choice = page.locator("#id_version")
    choice.select_option(value=choice.locator("option", has_text="digits").get_attribute("value"))
    reason = "Needs boxes, polygons or masks; this version has one class per image."
    expect(page.locator(".training-unfit")).to_have_text(reason)
    expect(page.locator("input[name=preset]:checked")).to_have_value("detect")  # the parameter set is of it

    narrow = open_as(alice, width=390, height=844, dark=True, language="zh-CN")
    for place, name in (
        (f"/training/params/{row.pk}/", "parameter-set-390"),
        (f"/training/new/?set={row.pk}", "training-from-set-390"),
    ):
        narrow.goto(place)
        fits(narrow)
        accessible(narrow)
        shot(narrow, name)
