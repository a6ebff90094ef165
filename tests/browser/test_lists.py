"""Lists in a real browser: filters act at once, heads sort by mouse and key, the address keeps what is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from accounts.models import Role
from accounts.services import roles
from tests.browser.conftest import in_both_looks
from tests.factories import annotation, datasets
from tests.factories import training as trainings
from training.runs.models import TrainingJob
from workers.resources.monitoring import alarms

pytestmark = pytest.mark.long


@pytest.fixture
def runs(site, alice, cluster) -> None:
    """Trainings alpha, Beta and gamma, the last one failed, each with its figure."""
    version = trainings.version(alice)
    for name, figure, state in (("alpha", 0.5, "succeeded"), ("Beta", 0.9, "succeeded"), ("gamma", 0.1, "failed")):
        made = trainings.training(alice, data=version, name=name, state=state)
        TrainingJob.objects.filter(pk=made.pk).update(metrics={"val/ap50": figure})


def names(page):
    return page.locator("#trainings tbody .main-cell a")


def test_list_filters_at_once_and_keeps_what_is_chosen_in_the_address(open_as, alice, runs, shot):
    page = open_as(alice)
    page.goto("/training/")
    expect(page.get_by_role("link", name="Show all")).to_be_hidden()

    page.get_by_label("State", exact=True).select_option("failed")

    expect(names(page)).to_have_text(["gamma"])
    assert page.url.endswith("/training/?state=failed")
    shot(page, "list-filtered")
    page.reload()
    expect(names(page)).to_have_text(["gamma"])
    expect(page.get_by_label("State", exact=True)).to_have_value("failed")
    page.get_by_role("link", name="Show all").click()
    expect(names(page)).to_have_text(["gamma", "Beta", "alpha"])
    assert page.url.endswith("/training/")
    page.go_back()
    expect(names(page)).to_have_text(["gamma"])
    expect(page.get_by_label("State", exact=True)).to_have_value("failed")


def test_list_follows_the_typing_without_a_step_back_for_each_letter(open_as, alice, runs):
    page = open_as(alice)
    page.goto("/")
    page.goto("/training/")

    page.get_by_label("Name, preset or dataset").press_sequentially("gam", delay=30)

    expect(names(page)).to_have_text(["gamma"])
    assert page.url.endswith("?q=gam")
    page.go_back()
    page.wait_for_url(re.compile(r"/$"))
    expect(page.get_by_role("heading", name="Home", exact=True)).to_be_visible()


def test_list_sorts_by_its_heads_with_the_keyboard_and_says_the_order(open_as, alice, runs, accessible, shot):
    page = open_as(alice)
    page.goto("/training/")
    head = page.get_by_role("columnheader", name="Metric")

    head.get_by_role("link").focus()
    page.keyboard.press("Enter")

    expect(names(page)).to_have_text(["Beta", "alpha", "gamma"])
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(head.get_by_role("link")).to_be_focused()
    shot(page, "list-sorted")
    accessible(page)
    page.keyboard.press("Enter")
    expect(names(page)).to_have_text(["gamma", "alpha", "Beta"])
    assert page.url.endswith("?ordering=figure")
    page.get_by_label("State", exact=True).select_option("completed")
    expect(names(page)).to_have_text(["alpha", "Beta"])
    expect(head).to_have_attribute("aria-sort", "ascending")


def test_list_works_without_scripts(open_as, alice, runs):
    page = open_as(alice, java_script_enabled=False)
    page.goto("/training/?ordering=name")

    page.get_by_label("State", exact=True).select_option("completed")
    page.get_by_role("button", name="Filter").click()

    expect(names(page)).to_have_text(["alpha", "Beta"])
    page.get_by_role("columnheader", name="Name").get_by_role("link").click()
    expect(names(page)).to_have_text(["Beta", "alpha"])


def test_gallery_follows_its_filters_at_once_and_keeps_the_annotations_hidden(open_as, alice, accessible, fits, shot):
    version = datasets.version(datasets.dataset(alice), images=4)
    page = open_as(alice)
    page.goto(f"/datasets/{version.dataset_id}/")
    tiles = page.locator("#images .tile")
    expect(tiles).to_have_count(4)
    page.get_by_label("Show annotations").uncheck()

    page.get_by_label("Class", exact=True).select_option("2")

    expect(tiles).to_have_count(2)
    assert page.url.endswith("?class=2")
    expect(page.locator("#images .shapes").first).to_be_hidden()
    page.get_by_label("Sort by").select_option("name")
    page.wait_for_url("**/?class=2&ordering=name")
    page.get_by_label("File name").press_sequentially("3.p", delay=30)
    expect(tiles).to_have_count(1)
    shot(page, "gallery-filtered")
    accessible(page)
    page.get_by_role("link", name="Show all").click()
    expect(tiles).to_have_count(4)
    expect(page.get_by_label("Class", exact=True)).to_have_value("")
    page.go_back()
    expect(tiles).to_have_count(1)
    expect(page.get_by_label("Sort by")).to_have_value("name")


def test_tiles_of_an_annotation_follow_state_and_filters_at_once(open_as, alice, work, accessible, fits, shot):
    annotation.draw(work.tasks.select_related("asset").get(number=2), alice)
    page = open_as(alice, width=390, height=844, dark=True)
    page.goto(f"/annotation/projects/{work.project_id}/datasets/{work.pk}/")
    tiles = page.locator("#images .tile")
    expect(tiles).to_have_count(3)

    page.get_by_label("Objects", exact=True).select_option("without")

    expect(tiles).to_have_count(2)
    page.get_by_role("link", name="In progress").focus()
    page.keyboard.press("Enter")
    expect(tiles).to_have_count(0)
    expect(page.get_by_role("link", name="In progress")).to_be_focused()
    assert page.url.endswith("?objects=without&state=in_progress")
    page.get_by_label("Objects", exact=True).select_option("with")
    expect(tiles).to_have_count(1)
    expect(page.get_by_role("link", name="In progress")).to_have_attribute("aria-current", "page")
    fits(page)
    accessible(page)
    shot(page, "tiles-filtered", full=True)
    page.get_by_role("link", name="Show all").first.click()
    expect(tiles).to_have_count(3)


@in_both_looks
def test_changed_lists_are_accessible_and_fit(
    open_as, olga, alice, anna, accessible, fits, shot, width, dark, language
):
    first = datasets.version(datasets.dataset(olga, "blood cells"), images=5)
    datasets.dataset(olga, "still empty")
    datasets.version(datasets.dataset(alice, "plates", visibility="public"), task="none")
    project = annotation.annotation_set(olga).project
    roles.create_group(name="lab", description="Microscopes", roles=[Role.objects.first()], members=[alice], by=None)
    page = open_as(olga, width=width, height=900, dark=dark, language=language)

    for path in ("/datasets/", f"/datasets/{first.dataset_id}/", f"/annotation/projects/{project.pk}/",
                 "/annotation/", "/people/", "/people/groups/", "/alarms/"):  # fmt: skip
        page.goto(path)
        fits(page)
        accessible(page)
        if page.locator(".page-actions summary").count():
            page.locator(".page-actions summary").click()
            fits(page)
        shot(page, f"lists{path.replace('/', '-')}{width}")


@pytest.mark.parametrize(
    ("path", "region", "head", "first"),
    [
        ("/people/roles/", "roles", "Name", "User"),
        ("/alarms/rules/", "rules", "Minimum duration", "A GPU is assigned but idle"),
        ("/alarms/addresses/", "addresses", "Address", "a@example.org"),
    ],
)
def test_small_list_sorts_by_its_heads_where_it_stands(
    site, open_as, olga, path, region, head, first, accessible, shot
):
    alarms.ensure_rules()
    for target in ("a@example.org", "b@example.org"):
        alarms.save_address(None, by=olga, channel="mail", target=target, least="warning")
    page = open_as(olga)
    page.goto(path)
    page.evaluate("window.stayed = true")
    column = page.get_by_role("columnheader", name=head)

    for _ in range(2):  # names rise first, times fall first
        column.get_by_role("link").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{path}?ordering=*")
        expect(column).to_have_attribute("aria-sort", re.compile("ascending|descending"))
        if page.locator(f"#{region} tbody .main-cell a").first.text_content() == first:
            break

    expect(page.locator(f"#{region} tbody .main-cell a").first).to_have_text(first)
    expect(column.get_by_role("link")).to_be_focused()
    assert page.evaluate("window.stayed")
    shot(page, f"list-{region}")
    accessible(page)
