"""Lists by mouse and keyboard: selection, actions on many rows, columns, density, heads that stay."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from datasets.models import Dataset
from tests.factories import datasets, training, work
from workers.core.models import Job


@pytest.fixture
def trainings(alice):
    work.node("node1", gpus=2, simulated=True)
    data = datasets.version(datasets.dataset(alice, "cells"))
    return [training.training(alice, name=f"run {n}", state="queued", data=data) for n in range(4)]


def box(page, name):
    return page.get_by_label(f"Select {name}", exact=True)


def test_selected_trainings_are_stopped_together(open_as, alice, trainings):
    page = open_as(alice)
    page.goto("/training/")
    bar = page.get_by_role("toolbar", name="Actions on the selected rows")
    expect(bar).to_be_hidden()

    box(page, "run 0").check()
    box(page, "run 2").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 selected")
    bar.get_by_role("button", name="Stop").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Stop 3 selected rows?")
    dialog.get_by_role("button", name="Stop").click()

    expect(page.locator(".toast-ok")).to_contain_text("Stop: 3 rows.")
    expect(bar).to_be_hidden()
    assert sorted(Job.objects.filter(state="stopped").values_list("name", flat=True)) == ["run 0", "run 1", "run 2"]


def test_refused_rows_stay_selected_with_their_reason(open_as, alice, trainings):
    used = trainings[0].version.dataset
    datasets.dataset(alice, "free")
    page = open_as(alice)
    page.watch.allow("status of 409")
    page.goto("/datasets/")

    page.get_by_label("Select all on this page").check()
    page.get_by_role("toolbar", name="Actions on the selected rows").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    expect(page.locator(".toast-fail")).to_contain_text("cells: ")
    expect(page.get_by_role("link", name="free", exact=True)).to_have_count(0)
    expect(box(page, "cells")).to_be_checked()
    assert list(Dataset.objects.filter(deleting=False)) == [used]


def test_rows_are_walked_and_selected_by_keys(open_as, alice, trainings):
    page = open_as(alice)
    page.goto("/training/")
    page.locator(".table tbody tr").first.wait_for()

    for key in ("j", "j", "x", "k", "x"):
        page.keyboard.press(key)

    names = page.locator('.table tbody tr[aria-selected="true"] .main-cell')
    expect(names).to_have_text([re.compile("run 3"), re.compile("run 2")])
    page.keyboard.press("Escape")
    expect(page.locator('.table tbody tr[aria-selected="true"]')).to_have_count(0)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/training/{trainings[2].pk}/**")


def test_columns_and_density_are_remembered(open_as, alice, trainings):
    page = open_as(alice)
    page.goto("/training/")
    owner = page.locator(".table thead th", has_text="Owner")
    row_height = page.locator(".table tbody tr").first.bounding_box()["height"]
    expect(owner).to_be_visible()

    page.get_by_label("Table view").click()
    page.get_by_role("checkbox", name="Owner").uncheck()
    page.get_by_role("radio", name="Compact").check()
    expect(owner).to_be_hidden()
    page.reload()

    expect(owner).to_be_hidden()
    expect(page.locator(".table tbody tr").first.locator("td:visible")).to_have_count(
        page.locator(".table thead th:visible").count()
    )
    assert page.locator(".table tbody tr").first.bounding_box()["height"] < row_height
    page.get_by_label("Table view").click()
    expect(page.get_by_role("checkbox", name="Owner")).not_to_be_checked()
    page.get_by_role("checkbox", name="Owner").check()
    expect(owner).to_be_visible()


def test_heads_stay_visible(open_as, alice):
    for number in range(20):
        datasets.dataset(alice, f"set {number}")
    page = open_as(alice)
    page.set_viewport_size({"width": 1440, "height": 500})
    page.goto("/datasets/")
    head = page.locator(".table thead th", has_text="Name")
    head.wait_for()

    page.locator(".table tbody tr").last.scroll_into_view_if_needed()

    expect(head).to_be_in_viewport()


def test_trainings_are_compared_from_the_bar(open_as, alice, trainings):
    page = open_as(alice)
    page.goto("/training/")

    box(page, "run 1").check()
    box(page, "run 3").check()
    page.get_by_role("button", name="Compare").click()

    page.wait_for_url(f"**/training/compare/?training={trainings[1].pk}&training={trainings[3].pk}")


def test_an_empty_list_has_one_action_and_no_filters(open_as, alice):
    page = open_as(alice)
    page.goto("/training/")

    expect(page.locator(".filter-bar")).to_be_hidden()
    expect(page.get_by_role("link", name="Read the guide")).to_have_attribute("href", "/help/how-to/train/")
    page.goto("/training/?state=failed")
    expect(page.locator(".filter-bar")).to_be_visible()
