"""Where the time of a step goes, on the page of a training."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import training as factory
from tests.factories import work
from tests.factories.profiles import GPU, changed, of_a_script, wrote
from training.runs import previews

pytestmark = pytest.mark.long


@in_both_looks
def test_steps_are_profiled_by_a_button_and_shown_when_they_are_done(
    open_as, alice, site, accessible, fits, shot, width, dark, language
):
    work.node(cores=4)
    training = factory.training(alice, name="slow", state="running", preset="detect")
    page = open_as(alice, width=width, height=1100, dark=dark, language=language)
    page.goto(f"/training/{training.pk}/metrics/")
    page.locator("#profile button[type=submit]").click()
    expect(page.locator("#profile .row a")).to_contain_text("slow_profile")

    look = previews.latest_profile(training, alice)
    wrote(look, changed(precision="float32", shares={**GPU["shares"], "wait": 0.3, "forward": 0.2, "other": 0.0}))
    expect(page.locator("#profile tbody tr")).to_have_count(5)  # it asked again by itself
    expect(page.locator("#profile .notice")).to_have_count(2)
    expect(page.locator("#profile .profile-line rect")).to_have_count(3)
    page.locator("#profile").scroll_into_view_if_needed()
    accessible(page)
    fits(page)
    shot(page, f"profile-{width}", full=True)


@in_both_looks
def test_own_code_shows_lines_to_copy_and_then_what_its_script_noted(
    open_as, alice, site, accessible, fits, shot, tmp_path, width, dark, language
):
    work.node(cores=4)
    code = factory.code(alice, tmp_path / "mine", train="print(1)\n")
    training = factory.training(alice, name="own", code=code, start_file="train.py", state="running")
    page = open_as(alice, width=width, height=1100, dark=dark, language=language)
    page.goto(f"/training/{training.pk}/metrics/")
    expect(page.locator("#profile-loop")).to_contain_text("from aip import profile")
    expect(page.locator("#profile button[type=submit]")).to_have_count(0)
    page.locator("#profile [data-copy-from]").first.click()
    page.locator("#profile").scroll_into_view_if_needed()
    accessible(page)
    fits(page)
    shot(page, f"own-profile-before-{width}", full=True)

    wrote(training, of_a_script())
    expect(page.locator("#profile tbody tr")).to_have_count(5, timeout=15_000)  # it asked again by itself
    expect(page.locator("#profile .profile-shares li")).to_have_count(4)
    expect(page.locator("#profile .notice")).to_contain_text("num_workers=4")
    page.locator("#profile a[href*=files]").click()
    expect(page).to_have_url(f"{site}/training/{training.pk}/files/?attempt=1")
    page.go_back()
    accessible(page)
    fits(page)
    shot(page, f"own-profile-{width}", full=True)
