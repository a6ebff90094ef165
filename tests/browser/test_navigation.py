"""The side bar, the command palette and the keys in a real browser."""

import pytest

from datasets.models import Dataset
from tests.factories import datasets, work

pytestmark = pytest.mark.browser


def test_groups_stay_folded_on_the_next_page_for_this_reader(open_as, alice):
    page = open_as(alice)
    page.goto("/datasets/")
    page.get_by_role("button", name="Deploy").click()

    page.goto("/training/")

    assert page.get_by_role("button", name="Deploy").get_attribute("aria-expanded") == "false"
    assert page.get_by_role("link", name="Models", exact=True).count() == 0
    assert page.get_by_role("link", name="Training", exact=True).first.is_visible()
    page.goto("/models/")  # the group of the current entry is open
    assert page.locator(".side [aria-current]").inner_text() == "Models"
    assert page.locator(".side [aria-current]").is_visible()


def test_operator_sees_cluster_and_administration_and_opens_the_product(open_as, olga, fits):
    page = open_as(olga)
    page.goto("/queue/")

    assert page.locator(".side-link:visible span:first-of-type").all_inner_texts() == [
        "Home", "Jobs", "Nodes", "Usage", "Users", "Alerts", "Help", "Collapse side bar",
    ]  # fmt: skip
    page.get_by_role("button", name="Data", exact=True).click()
    page.get_by_role("link", name="Datasets", exact=True).click()
    page.wait_for_url("**/datasets/")
    fits(page)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_palette_opens_a_page_by_the_keyboard_and_remembers_it(open_as, alice, accessible, shot, dark):
    page = open_as(alice, dark=dark)
    page.goto("/datasets/")

    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Presets").wait_for()
    accessible(page)
    shot(page, f"palette-{'dark' if dark else 'light'}")
    page.keyboard.type("param sets")
    page.keyboard.press("Enter")
    page.wait_for_url("**/training/params/")
    page.keyboard.press("Control+k")

    assert (
        page.get_by_role("group", name="Recent").get_by_role("option").first.inner_text().startswith("Parameter sets")
    )


def test_palette_stops_a_job_after_a_question(open_as, alice, cluster):
    job = work.job(alice, cluster, state="running", name="nightly")
    page = open_as(alice)
    page.goto("/datasets/")

    page.keyboard.press("/")
    page.keyboard.type(f"stop {job.pk}")
    page.get_by_role("option", name=f"Stop job {job.pk}").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Continue").click()
    page.wait_for_load_state("networkidle")

    job.refresh_from_db()
    assert job.desired == "stop"


def test_palette_starts_a_training_on_a_dataset(open_as, alice):
    dataset = Dataset.objects.create(owner=alice, name="bccd")
    version = dataset.versions.create(number=1, state="ready", image_count=3, annotated=True, task="detection")
    page = open_as(alice)
    page.goto("/models/")

    page.keyboard.press("Control+k")
    page.keyboard.type("new train bccd")
    page.get_by_role("option", name="New training on bccd").wait_for()
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/training/new/?version={version.pk}")


def test_palette_runs_nothing_of_an_earlier_text(open_as, alice):
    page = open_as(alice)
    page.goto("/datasets/")
    page.keyboard.press("Control+k")
    page.locator("#palette").get_by_text("Commands", exact=True).wait_for()
    page.keyboard.type("dark")
    page.get_by_role("option", name="Dark theme").wait_for()

    page.route("**/search/**", lambda route: route.abort())
    page.route("**/search*", lambda route: route.abort())
    page.watch.allow("ERR_FAILED")
    page.keyboard.type(" models")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)  # pause: nothing may happen

    assert page.locator("html").get_attribute("data-theme") != "dark"
    assert page.locator("#palette").is_visible()


def test_palette_presses_the_dark_theme(open_as, alice):
    page = open_as(alice)
    page.goto("/datasets/")

    page.keyboard.press("Control+k")
    page.keyboard.type("dark")
    page.get_by_role("option", name="Dark theme").wait_for()
    with page.expect_response("**/api/v1/me/"):
        page.keyboard.press("Enter")

    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_keys_open_entries_and_list_themselves(open_as, alice, accessible, shot):
    page = open_as(alice)
    page.goto("/models/")

    page.keyboard.press("g")
    page.keyboard.press("d")
    page.wait_for_url("**/datasets/")
    page.keyboard.press("?")

    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    assert "Workspaces" in dialog.inner_text()
    accessible(page)
    shot(page, "shortcuts")


def test_keys_do_nothing_while_typing_and_once_switched_off(open_as, alice):
    datasets.dataset(alice, "cells")
    page = open_as(alice)
    page.goto("/datasets/")
    page.locator("main input[name=q]").fill("g")
    page.locator("main input[name=q]").press("d")
    assert page.url.split("?")[0].endswith("/datasets/")

    page.goto("/account/")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.goto("/models/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    page.keyboard.press("/")

    assert page.url.endswith("/models/")
    assert page.locator("dialog[open]").count() == 0
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or run a command").wait_for()


@pytest.mark.parametrize(
    ("path", "width", "language"), [("/training/presets/", 1440, "en"), ("/people/audit/", 390, "zh-CN")]
)
def test_pages_with_tabs_fit_their_window(open_as, olga, fits, accessible, shot, path, width, language):
    page = open_as(olga, width=width, height=844, language=language)

    page.goto(path)

    fits(page)
    accessible(page)
    shot(page, f"tabs-{width}")
    if width < 860:
        page.locator("[data-side-open]").click()
        page.locator(".side [aria-current]").wait_for(state="visible")
        shot(page, f"drawer-{width}")


def test_slim_side_bar_shows_all_entries_and_is_accessible(open_as, olga, accessible, shot):
    page = open_as(olga)
    page.goto("/queue/")

    page.get_by_role("button", name="Collapse side bar").click()

    assert page.locator(".side [data-go]:visible").count() == 15
    accessible(page)
    shot(page, "slim")
