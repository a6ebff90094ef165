"""Charts of metrics in a real browser: crosshair and tooltip, keyboard, full screen, legend."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import expect

from tests.factories import curves, work
from tests.fakes.kinds import RememberingKind
from workers.core import kinds
from workers.jobs.output import metrics


@pytest.fixture(autouse=True)
def _kind():
    with kinds.KINDS.temporarily(RememberingKind()):
        yield


def curve(job, key, values):
    curves.report(job.attempts.get(), key, ((10 * n, value) for n, value in enumerate(values)))


@pytest.fixture
def curved(site, alice, cluster):
    """A running job with two losses, by step and by epoch, and what it uses."""
    running = work.job(alice, cluster, name="digits", state="running")
    curve(running, "train/loss", [math.exp(-n / 30) + 0.1 for n in range(120)])
    curve(running, "val/loss", [math.exp(-n / 40) + 0.2 for n in range(120)])
    curve(running, "val/ap50", [n / 200 for n in range(120)])
    curve(running, "epoch", [n / 12 for n in range(120)])
    metrics.record_system(running.attempts.get(), {"system/cpu": 120.0, "system/memory_mib": 900.0})
    return running


def chart_of(page, title: str):
    return page.locator(".chart-card", has=page.get_by_role("heading", name=title, exact=True))


def test_charts_share_a_crosshair_with_a_tooltip(open_as, curved, alice, accessible, shot):
    page = open_as(alice)
    page.goto(f"/jobs/{curved.pk}/?tab=metrics")
    loss, ap = chart_of(page, "Loss"), chart_of(page, "Average precision")
    expect(loss.locator("canvas")).to_be_visible()
    expect(loss.locator(".chart-key")).to_have_count(2)
    expect(ap.locator(".chart-legend")).to_be_hidden()
    expect(ap.locator(".chart-numbers")).to_have_text("0.595best 0.595 at 1,190")

    box = loss.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)

    expect(loss.locator(".chart-tip-row")).to_have_count(2)
    expect(loss.locator(".chart-tip")).to_contain_text("Training loss")
    expect(ap.locator(".chart-tip")).to_be_visible()
    assert ap.locator(".chart-tip-place").inner_text() == loss.locator(".chart-tip-place").inner_text()
    shot(page, "charts-tooltip", full=True)
    accessible(page)


def test_charts_work_by_keyboard(open_as, curved, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{curved.pk}/?tab=metrics")
    loss = chart_of(page, "Loss")
    expect(loss.locator("canvas")).to_be_visible()
    frame = loss.locator(".chart-frame")

    frame.focus()
    page.keyboard.press("Home")
    first = loss.locator("[aria-live]").inner_text()
    page.keyboard.press("ArrowRight")
    second = loss.locator("[aria-live]").inner_text()
    page.keyboard.press("Escape")

    assert first.startswith("Step 0, Validation loss 1.2")
    assert second.startswith("Step 10, ")
    expect(loss.locator(".chart-tip")).to_be_hidden()
    assert frame.get_attribute("aria-label").startswith("Loss: Training loss 0.1")


def test_a_chart_fills_the_screen_until_escape(open_as, curved, alice, shot):
    page = open_as(alice)
    page.goto(f"/jobs/{curved.pk}/?tab=metrics")
    loss = chart_of(page, "Loss")
    expect(loss.locator("canvas")).to_be_visible()

    loss.get_by_label("Show Loss in full screen").click()
    expect(loss.get_by_label("Leave full screen")).to_be_visible()
    expect(page.locator(".chart-card:fullscreen canvas")).not_to_have_css("height", "200px")
    assert loss.locator("canvas").bounding_box()["height"] > 500
    shot(page, "charts-full-screen")
    loss.get_by_label("Leave full screen").click()

    expect(page.locator(".chart-card:fullscreen")).to_have_count(0)
    expect(loss.locator("canvas")).to_have_css("height", "200px")


def test_a_legend_hides_lines_and_smoothing_keeps_the_raw_ones(open_as, curved, alice):
    page = open_as(alice)
    page.goto(f"/jobs/{curved.pk}/?tab=metrics")
    loss = chart_of(page, "Loss")
    expect(loss.locator("canvas")).to_be_visible()
    key = loss.locator(".chart-key", has_text="Validation loss")

    page.locator("[data-chart-smooth]").fill("0.8")
    page.locator("[data-chart-axis]").select_option("epoch")
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    loss.get_by_label("Export Loss", exact=True).click()
    with page.expect_download() as csv:
        loss.get_by_label("Save Loss as CSV").click()

    head, *rows = csv.value.path().read_text().splitlines()
    assert head == "epoch,Training loss"
    assert rows[-1].startswith("9.9166")
