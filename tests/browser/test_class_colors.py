"""Colors of classes, and rows that offer their removal where the pointer is, in a real browser."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from aiplatform.lib.class_colors import PALETTE
from datasets.models import Asset
from tests.browser.conftest import in_both_looks
from tests.inference import judged
from tests.inference.seeing import annotated


@in_both_looks
def test_color_of_a_class_is_changed_and_drawn_on_the_page_of_the_version(
    open_as, alice, accessible, fits, shot, width, dark, language
):
    version = annotated(alice)
    number = version.classes[0]["id"]
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto(f"/datasets/{version.dataset_id}/")
    page.locator("summary", has=page.locator("use[href*='#more']")).click()
    page.locator("[data-dialog-open=class-colors]").click()
    page.locator(f"#color-{number}").fill("#ff0000")
    accessible(page)
    fits(page)
    shot(page, f"class-colors-{width}")

    page.locator("#class-colors button.btn-primary").click()

    expect(page.locator(".legend circle").first).to_have_attribute("fill", "#ff0000")
    version.refresh_from_db()
    assert version.class_colors[number] == "#ff0000"
    accessible(page)
    fits(page)


@in_both_looks
def test_evaluation_draws_objects_in_the_colors_of_their_classes(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    made = judged.evaluation(alice, tmp_path)
    lines = (made.version.path / "manifest.jsonl").read_text().splitlines()
    Asset.objects.bulk_create(Asset(version=made.version, **json.loads(line)) for line in lines)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/evaluations/{made.pk}/#images")

    page.locator("#gallery").scroll_into_view_if_needed()
    expect(page.locator("#gallery .legend-line circle").first).to_have_attribute("fill", PALETTE[0])
    drawn = page.locator("#gallery rect[class^=box]").evaluate_all("all => all.map((one) => one.getAttribute('color'))")

    assert len(set(drawn)) >= 2
    assert set(drawn) <= set(PALETTE)
    accessible(page)
    fits(page)
    shot(page, f"evaluation-colors-{width}")


def test_annotator_offers_to_delete_an_object_on_hover_and_restores_it(hands, accessible, shot):
    page = hands.page
    hands.press("r")
    hands.drag(4, 4, 20, 20)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    row = page.locator("[data-objects] .annotator-row").first
    bin_button = row.locator("[data-key^=bin-]")
    page.mouse.move(5, 5)
    expect(bin_button).to_have_css("opacity", "0")

    row.hover()
    expect(bin_button).to_have_css("opacity", "1")
    shot(page, "annotator-row-hover")
    bin_button.click()

    expect(page.locator("[data-hint]")).to_have_text(re.compile("deleted. Undo restores it."))
    expect(page.locator("[data-objects] .annotator-row")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(page.locator("[data-objects] .annotator-row")).to_have_count(1)
    accessible(page)


def test_annotator_shows_an_untouched_image_as_new_until_the_first_edit(hands):
    page = hands.page
    chip = page.locator("[data-task-state]")
    expect(chip).to_have_text("New")
    hands.open(2)
    hands.open(1)
    expect(chip).to_have_text("New")

    hands.press("r")
    hands.drag(4, 4, 20, 20)

    expect(chip).to_have_text("In progress")
    hands.saved()
    assert hands.work.tasks.get(number=1).state == "in_progress"
    page.goto(f"/annotation/projects/{hands.work.project_id}/datasets/{hands.work.pk}/?state=in_progress")
    expect(page.locator(".tile")).to_have_count(1)
