"""Trainings chosen in the list, beside each other, in a real browser."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import curves, work
from tests.factories import training as factory

pytestmark = pytest.mark.long


@pytest.fixture
def three(alice, live_server):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    made = []
    for place, rate in enumerate((0.01, 0.03, 0.1)):
        params = {"lr": rate, "batch_size": 64}
        training = factory.training(
            alice, data=data, name=f"rate-{rate}", state="running", preset="classify", params=params
        )
        attempt = training.job.attempts.get()
        accuracy = ((step, 1 - math.exp(-step * (place + 1) / 900)) for step in range(0, 3000, 100))
        loss = ((step, math.exp(-step * (place + 1) / 900) + 0.1 * math.sin(step)) for step in range(3000))
        curves.report(attempt, "val/accuracy", accuracy)
        curves.report(attempt, "train/loss", loss)
        curves.report(attempt, "my own (%)", [(0, 1.0), (2999, 2.0)])  # names may have spaces
        made.append(training)
    return made


def save(page, title: str, form: str) -> None:
    page.get_by_label(f"Export {title}", exact=True).click()
    page.get_by_role("button", name=f"Save {title} as {form}", exact=True).click()


@in_both_looks
def test_trainings_are_chosen_in_the_list_and_compared(
    open_as, alice, three, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/training/")
    bar = page.locator("[data-bulk]")
    expect(bar).to_be_hidden()
    for training in three:
        page.locator(f"#training-{training.pk} input[type=checkbox]").check()
    expect(bar).to_contain_text("3")
    bar.locator("[data-bulk-code=compare]").click()

    page.wait_for_url("**/training/compare/?*")
    charts = page.locator(".compare-chart")
    expect(charts).to_have_count(3)
    expect(charts.first.locator("canvas")).to_be_visible()
    expect(charts.first.locator(".chart-note")).to_contain_text("90")
    expect(page.locator("[data-given] tbody tr:visible")).to_have_count(1)
    accessible(page)
    fits(page)
    shot(page, f"compare-{width}")

    page.locator(f"[data-run='{three[0].job.run.pk}']").uncheck()
    expect(charts.first.locator(".chart-note")).to_contain_text("60")
    page.locator("[data-differing]").uncheck()
    expect(page.locator("[data-given] tbody tr:visible")).not_to_have_count(1)


def test_part_of_a_curve_is_seen_closer_and_whole_again(open_as, alice, three):
    page = open_as(alice, width=1440, height=900)
    page.goto("/training/compare/?" + "&".join(f"training={training.pk}" for training in three))
    card = page.locator(".compare-chart[data-key='train/loss']")
    told = card.locator(".chart-note")
    expect(told).to_contain_text("9,000 points")
    over = card.locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()

    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 50, steps=5)
    page.mouse.up()
    page.mouse.move(5, 5)
    expect(told).to_contain_text(re.compile(r"\b\d{3} points"))
    beside = page.locator(".compare-chart[data-key='val/accuracy'] .chart-note")
    expect(beside).to_contain_text(re.compile(r"^\d points"))  # all charts of the page show the same part

    card.locator(".u-over").dblclick()
    page.mouse.move(5, 5)
    expect(told).to_contain_text("9,000 points")
    expect(beside).to_contain_text("90 points")
    expect(page.locator(".compare-chart[data-key='my own (%)'] .chart-note")).to_contain_text("6 points")


def test_runs_alike_are_drawn_as_one_line_with_a_band(open_as, alice, three, accessible, shot):
    page = open_as(alice, width=1440, height=900)
    query = "&".join(f"training={training.pk}" for training in three)
    page.goto(f"/training/compare/?{query}")
    told = page.locator(".compare-chart[data-key='val/accuracy'] .chart-note")
    expect(told).to_contain_text("90 points")
    page.locator("details", has=page.locator("[data-group-by]")).locator("summary").click()
    page.locator("[data-group-by] input[value=lr]").check()
    expect(page.locator("[data-groups] li")).to_have_count(3)
    page.keyboard.press("Escape")
    shot(page, "compare-grouped")
    accessible(page)
    with page.expect_download() as coming:
        save(page, "val/accuracy", "CSV")
    rows = coming.value.path().read_text().splitlines()
    assert rows[0].split(",")[:2] == ["step", "lr 0.01 (n 1)"]
    assert len(rows) == 31


def test_comparison_goes_by_epochs_and_is_saved_as_svg(open_as, alice, three):
    for training in three:
        curves.report(training.job.attempts.get(), "epoch", [(1000, 1.0), (3000, 3.0)])
    page = open_as(alice, width=1440, height=900)
    page.goto("/training/compare/?" + "&".join(f"training={training.pk}" for training in three))
    card = page.locator(".compare-chart[data-key='train/loss']")
    expect(card.locator(".chart-note")).to_contain_text("9,000 points")

    page.locator("[data-chart-axis]").select_option("epoch")
    card.scroll_into_view_if_needed()
    expect(card.locator(".u-axis, canvas").first).to_be_visible()
    with page.expect_download() as waiting:
        save(page, "train/loss", "SVG")
    text = waiting.value.path().read_text()

    assert waiting.value.suggested_filename == "train-loss.svg"
    assert text.count("<path") == 6  # three lines and their bands
    assert "rate-0.01" in text
    assert "NaN" not in text
