"""What runs show besides curves, in a real browser: drawn, moved through its steps, and reached by keys."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import curves, shown, work
from training.experiments.visualisation.runs import VIEWS

pytestmark = pytest.mark.long

PAGE = "/training/visualisation/"


@pytest.fixture
def two(alice, cluster, live_server):
    made = [work.job(alice, cluster, name=f"run {number}", state="running") for number in (1, 2)]
    for job in made:
        curves.report(job.attempts.get(), "train/loss", [(step, 1 / (step + 1)) for step in range(100)])
        shown.everything(job, 8)
    return made


@in_both_looks
def test_visualisation_views_are_drawn_accessible_and_fit(
    open_as, alice, two, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto(PAGE)
    expect(page.locator("[data-view-runs]")).to_be_disabled()
    for box in page.locator("input[name=run]").all():
        box.check()
    accessible(page)
    fits(page)
    shot(page, f"visualisation-choose-{width}")
    page.locator("[data-view-runs]").click()
    page.wait_for_url("**run=*")
    asked = f"?run={two[0].pk}&run={two[1].pk}"

    drawn = {
        "scalars": "canvas", "images": "img", "histograms": "svg .ridge", "distributions": "svg .band",
        "texts": "pre", "tables": "td", "graph": "svg .graph-box", "embeddings": "canvas", "parameters": "td",
        "figures": "iframe", "audio": "audio", "videos": "img",
    }  # fmt: skip
    assert set(drawn) == {view.name for view in VIEWS}
    for view, element in drawn.items():
        page.goto(f"{PAGE}{asked}&view={view}")
        expect(page.locator(f"main {element}").first).to_be_visible()
        expect(page.locator("[aria-busy]")).to_have_count(0)
        accessible(page)
        fits(page)
        shot(page, f"visualisation-{view}-{width}")


def test_visualisation_steps_move_by_keys(open_as, alice, two):
    page = open_as(alice)
    page.goto(f"{PAGE}?run={two[0].pk}&view=images")
    slider = page.locator("input[type=range]")
    expect(page.locator("output")).to_have_text("step 7")
    first = page.locator("main img").get_attribute("src")

    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")

    expect(page.locator("output")).to_have_text("step 1")
    assert page.locator("main img").get_attribute("src") != first
    expect(page.locator("main img")).to_have_js_property("naturalWidth", 320)


def test_figure_draws_itself_and_reaches_nothing(open_as, alice, two):
    page = open_as(alice)
    page.goto(f"{PAGE}?run={two[0].pk}&view=figures")
    frame = page.locator("iframe").content_frame

    expect(frame.locator("#drawn")).to_have_text("drawn")
    expect(frame.locator("body")).to_contain_text("refused")

    page.goto(page.locator("iframe").get_attribute("src"))  # opened by itself
    expect(page.locator("#drawn")).to_have_text("drawn")
    expect(page.locator("body")).to_contain_text("refused")


def test_visualisation_graph_opens_by_keys_and_goes_back(open_as, alice, two):
    page = open_as(alice)
    page.goto(f"{PAGE}?run={two[0].pk}&view=graph")
    boxes = page.locator(".graph-box")
    expect(boxes).to_have_count(4)  # within net: input, fc1, relu, fc2
    scope = page.get_by_role("button", name=re.compile("^fc1"))
    expect(scope).to_have_attribute("aria-label", re.compile("2 nodes.*receives input"))

    scope.focus()
    page.keyboard.press("Enter")

    expect(boxes).to_have_count(2)
    expect(page.get_by_role("img", name=re.compile("^mul · MatMul"))).to_be_visible()
    page.get_by_role("button", name="net", exact=True).click()
    expect(boxes).to_have_count(4)
