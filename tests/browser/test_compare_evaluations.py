"""Evaluations chosen in the list and compared, in a real browser."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from inference.evaluation import results
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference import judged


@pytest.fixture
def detections(alice, tmp_path, live_server):
    """Two evaluations of detectors on one version."""
    first = judged.evaluation(alice, tmp_path, task="detection")
    other = factory.model_version(alice, tmp_path / "second", name="second")
    second = judged.judged(alice, other, first.version)
    _let_miss(second)
    return [first, second]


def _let_miss(evaluation) -> None:
    """Take the answers of every other image away, as of a model that is worse."""
    path = results.folder(evaluation) / "images.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries[::2]:
        entry |= {"answers": [], "tp": 0, "fp": 0, "fn": len(entry["truth"]), "badness": 1.0}
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@in_both_looks
def test_evaluations_are_chosen_in_the_list_and_compared(
    open_as, alice, detections, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/evaluations/")
    act = page.locator("[data-bulk-code=compare]")
    expect(act).to_be_hidden()
    boxes = page.locator("[data-select]")
    boxes.nth(0).check()
    expect(act).to_be_disabled()
    boxes.nth(1).check()
    act.click()

    page.wait_for_url("**/evaluations/compare/?*")
    expect(page.locator(".compared tbody tr")).not_to_have_count(0)
    expect(page.locator(".compared .tag").first).to_be_visible()
    page.locator("section[aria-labelledby^=h-images]").scroll_into_view_if_needed()
    expect(page.locator("main [aria-pressed=true]")).to_have_count(1)
    accessible(page)
    fits(page)

    page.locator("main button[aria-pressed]").nth(3).click()
    expect(page.locator("main button[aria-pressed]").nth(3)).to_have_attribute("aria-pressed", "true")
    page.locator("main button[aria-pressed]").first.click()
    expect(page.locator(".compared-pair").first.locator("figure")).to_have_count(2)
    shot(page, f"compare-evaluations-{width}", full=True)
    page.locator(".compared thead a[href^='?']").first.click()
    expect(page).to_have_url(re.compile("base="))


def test_evaluations_of_different_splits_cannot_be_compared_in_the_list(open_as, alice, detections):
    type(detections[0]).objects.filter(pk=detections[0].pk).update(split="val")
    page = open_as(alice)
    page.goto("/evaluations/")
    act = page.locator("[data-bulk-code=compare]")

    for box in page.locator("[data-select]").all():
        box.check()

    expect(act).to_be_disabled()
    expect(act).to_have_attribute("title", "Select evaluations of the same task, dataset version and split.")


def test_list_of_a_model_shows_its_evaluations_until_all_are_chosen(open_as, alice, detections, accessible, fits, shot):
    model = detections[0].model_version.model
    page = open_as(alice, width=390, height=844)
    page.goto(f"/evaluations/?model={model.pk}")
    choice = page.get_by_label("Model", exact=True)
    rows = page.locator("#evaluations tbody tr")

    expect(choice.locator("option:checked")).to_have_text(model.name)
    expect(rows).to_have_count(1)
    accessible(page)
    fits(page)
    shot(page, "evaluations-of-model")
    choice.select_option(label="All models")
    expect(rows).to_have_count(2)
    page.goto(f"/conversions/?model={model.pk}")
    accessible(page)
    shot(page, "conversions-of-model")
    page.locator("[data-filtered] .btn-primary").click()
    expect(page.locator("[name=model_version]").first).to_have_value(str(detections[0].model_version_id))


def test_compared_models_begin_with_metrics(open_as, alice, detections, accessible, fits, shot):
    models = [row.model_version.model_id for row in detections]
    page = open_as(alice, width=1440, height=900)
    page.goto("/models/compare/?" + "&".join(f"model={pk}" for pk in models) + "&all=1")
    accessible(page)
    fits(page)
    shot(page, "compare-models", full=True)
    expect(page.get_by_role("row", name="Input size")).to_have_text(re.compile(r"\d+ × \d+"))


def test_what_cannot_be_compared_says_why_and_leads_back(open_as, alice, detections, accessible):
    page = open_as(alice)
    page.watch.allow("status of 400")
    page.goto(f"/evaluations/compare/?evaluation={detections[0].pk}")

    expect(page.locator(".notice-fail")).to_contain_text("Select 2 to 6")
    accessible(page)
    page.get_by_role("link", name="Select others").click()
    expect(page).to_have_url(re.compile("/evaluations/$"))
