"""The pages of studies in a real browser: the list, a new one, one that found something."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import training as factory
from tests.factories import work
from tests.studies.helpers import complete, live, study
from training.studies import advancing
from training.studies.models import Study

pytestmark = pytest.mark.long


@pytest.fixture
def found(alice, site):
    work.node(cores=4)
    made = study(alice, max_trials=12, at_once=12, space=["x = -5 .. 5.0", "lr = 0.001 .. 0.1 log", "mode = a, b"])
    advancing.advance(made.pk)
    for trial in live(made)[:-1]:
        value = trial.params["x"] ** 2
        complete(trial, value + 2, value + 1, value)
    advancing.advance(made.pk)
    return made


@in_both_looks
def test_study_shows_what_it_found(open_as, alice, found, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/studies/")
    page.get_by_role("link", name="hunt").click()

    expect(page.locator("[data-history] canvas")).to_be_visible()
    expect(page.locator("[data-curves] canvas")).to_be_visible()
    expect(page.locator("[data-importance] li")).to_have_count(3)
    expect(page.locator("[data-parallel] path")).to_have_count(11)
    expect(page.locator("[data-slices] svg")).to_have_count(3)
    expect(page.locator("[data-front]")).to_be_hidden()
    accessible(page)
    fits(page)
    shot(page, f"study-{width}")

    page.locator("[data-fanova]").click()
    expect(page.locator("[data-importance] [data-told]")).to_contain_text("fANOVA")
    page.locator(".study-grip").first.evaluate("grip => { grip.dataset.old = ''; }")
    page.locator("[data-order='value:0']").click()
    expect(page.locator("[aria-sort='ascending']")).to_have_count(1)
    expect(page.locator(".study-grip[data-old]")).to_have_count(0)  # the charts were drawn again
    first = page.locator(".study-grip").first
    first.hover(position={"x": 14, "y": 20})  # waits until it stands still
    page.mouse.down()  # from now on nothing is drawn anew
    grip = first.bounding_box()
    page.mouse.move(grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2)
    page.mouse.up()
    expect(page.locator(".study-off")).not_to_have_count(0)


def test_study_page_asks_again_for_the_importance_that_it_did_not_get(open_as, alice, found):
    page = open_as(alice)
    page.watch.allow("Failed to load resource")
    page.route("**/importance/**", lambda route: route.abort(), times=1)
    page.goto(f"/studies/{found.pk}/")
    expect(page.locator("[data-slices] svg")).to_have_count(3)

    page.locator("[data-order='value:0']").click()

    expect(page.locator("[data-importance] li")).to_have_count(3)


def test_study_page_follows_a_trial_that_ends(open_as, alice, found):
    type(alice).objects.filter(pk=alice.pk).update(refresh_s=1)
    page = open_as(alice)
    page.goto(f"/studies/{found.pk}/")
    expect(page.locator("[data-parallel] path")).to_have_count(11)

    complete(live(found)[0], 0.0)
    advancing.advance(found.pk)

    expect(page.locator("[data-parallel] path")).to_have_count(12)
    expect(page.locator("#study-now")).to_contain_text("All 12 trials are done.")


@pytest.mark.parametrize(("width", "language"), [(1440, "en"), (390, "zh-CN")], ids=["wide", "narrow-chinese"])
def test_study_is_begun_from_a_preset(open_as, alice, site, accessible, fits, shot, width, language):
    work.node(cores=4)
    data = factory.version(alice, "pets", task="classification")
    page = open_as(alice, width=width, height=900, language=language)
    page.goto(f"/studies/new/?version={data.pk}")
    accessible(page)
    fits(page)
    shot(page, f"study-new-{width}")

    page.locator("[name=range__lr]").fill("0.1 .. 0.001")
    page.locator(".btn-primary").click()
    page.watch.allow("status of 422")
    expect(page.locator(".form-error")).to_have_count(1)
    page.locator("[name=range__lr]").fill("0.001 .. 0.1 log")
    page.locator(".btn-primary").click()

    page.wait_for_url("**/studies/*/")
    made = Study.objects.get()
    assert made.space == [{"name": "lr", "type": "float", "low": 0.001, "high": 0.1, "log": True}]
    expect(page.locator("#study-now .empty")).to_be_visible()
    accessible(page)
