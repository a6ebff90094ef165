"""Placeholders of late parts: shown after a moment, in the place of what comes, gone with it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.factories import curves, work
from tests.factories import training as trainings


def test_a_chart_keeps_its_place_while_its_curves_load(open_as, alice, site):
    work.node(cores=4)
    row = trainings.training(alice, name="run", state="running")
    curves.report(row.job.attempts.get(), "train/loss", [(1, 2.0), (2, 1.0)])
    page = open_as(alice)
    waiting = []
    page.route("**/comparison/curves/**", lambda route: waiting.append(route))  # noqa: PLW0108  Playwright wants a function of its own
    page.goto(f"/training/compare/?training={row.pk}")
    frame = page.locator(".chart-frame").first

    expect(frame.locator(".skeleton")).to_be_visible()
    before = page.locator(".compare-chart").first.bounding_box()["height"]
    waiting[0].continue_()
    expect(frame.locator("canvas")).to_be_visible()
    expect(frame.locator(".skeleton")).to_have_count(0)
    after = page.locator(".compare-chart").first.bounding_box()["height"]

    assert abs(after - before) < 24  # the line with the number of points


def test_the_annotator_shows_that_an_image_is_on_its_way(hands):
    page = hands.page
    waiting = []
    hands.ready(hands.work.tasks.get(number=1).pk)
    page.wait_for_load_state("networkidle")  # the next image was fetched ahead
    page.route("**/image/", lambda route: waiting.append(route))  # noqa: PLW0108  Playwright wants a function of its own
    stage = page.locator(".annotator-waiting")
    expect(stage).to_be_hidden()

    hands.press("d")
    hands.ready(hands.work.tasks.get(number=2).pk)
    hands.press("d")
    expect(stage).to_be_visible()
    for request in waiting:
        request.continue_()

    hands.ready(hands.work.tasks.get(number=3).pk)
    expect(stage).to_be_hidden()
