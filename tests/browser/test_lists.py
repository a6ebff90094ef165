"""Lists in a real browser: filters act at once, heads sort by mouse and key, the address keeps what is shown."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.factories import training as trainings
from training.models import TrainingJob


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
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_list_sorts_by_its_heads_with_the_keyboard_and_says_the_order(open_as, alice, runs, accessible, shot):
    page = open_as(alice)
    page.goto("/training/")
    head = page.get_by_role("columnheader", name="Figure")

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
