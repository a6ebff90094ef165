"""The report of faulty data: what is used and skipped, and what a user decides."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from datasets.models import Import
from datasets.services import imports
from tests.datasets.helpers import checked, zipped
from tests.datasets.read_folders import LINE, drawn, photo, yolo_pairs
from tests.factories import datasets as make


def work() -> None:
    """What the worker would do now."""
    for pk in Import.objects.filter(state__in=Import.WORKING).values_list("pk", flat=True):
        imports.run(pk)


def test_report_skips_objects_and_lets_a_user_choose_masks_and_encoding(open_as, alice, accessible, fits, shot):
    files = yolo_pairs(3, i0="0 nan 0.5 0.2 0.2\n" + LINE) | {"via.json": '{"_via_settings": 1}', "data.yaml": "x: 1"}
    files |= {"classes.txt": "猫\n狗\n".encode("gb18030"), "photo.png": photo()}
    files |= {f"one/{n}.png": drawn((255, 0, 0), (0, 255, 0), (0, 0, 255)) for n in "ab"}
    files |= {f"two/{n}.png": drawn((255, 255, 255), (0, 0, 0)) for n in "ab"}
    row = checked(make.dataset(alice), zipped(files))
    page = open_as(alice)
    page.goto(f"/datasets/{row.dataset_id}/imports/{row.pk}/")

    expect(page.get_by_text("Skipped: 1 of 4 annotations.")).to_be_visible()
    expect(page.get_by_role("button", name="Skip 1 of 4 objects and import the rest")).to_be_visible()
    expect(page.get_by_role("img", name="two/a.png")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, "datasets-import-decisions", full=True)
    page.get_by_label("Encoding of text files").fill("gb18030")
    page.get_by_role("group", name="two").get_by_label("Images").check()
    page.get_by_role("button", name="Check again").last.click()
    work()
    expect(page.get_by_text(re.compile("The file was read as gb18030"))).to_be_visible()
    expect(page.get_by_text("Masks or images")).to_be_visible()  # one form at a time
    page.get_by_role("group", name="two").get_by_label("Images").check()
    page.get_by_role("button", name="Check again").first.click()
    work()
    expect(page.get_by_text("Masks or images")).to_have_count(0)
    page.get_by_role("button", name="Skip 1 of 4 objects and import the rest").click()
    work()
    expect(page.locator(".gallery .tile").first).to_be_visible()
