"""Versions of a model beside each other, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.registry.models import ModelVersion
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory


@in_both_looks
def test_versions_are_chosen_and_compared(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    first = factory.model_version(alice, tmp_path / "1")
    made = [first, *(factory.model_version(alice, tmp_path / str(n), model=first.model) for n in (2, 3))]
    for number, version in enumerate(made, 1):
        ModelVersion.objects.filter(pk=version.pk).update(
            metrics={"ap50": round(0.8 + number / 50, 3), "map": 0.5}, params={"lr": number / 100, "width": 320},
            dataset_label=f"cells v{min(number, 2)}", size_bytes=3_000_000 * number,
        )  # fmt: skip
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/models/{first.model_id}/all/")

    beside = page.locator("section[aria-labelledby=h-beside]")
    expect(beside.locator("thead a[href^='?']")).to_have_count(2)
    expect(beside.locator("tbody")).to_contain_text("0.86")
    expect(beside.locator("tbody")).to_contain_text("+0.04")
    accessible(page)
    fits(page)
    shot(page, f"versions-{width}", full=True)

    beside.locator("input[value='2']").uncheck()
    beside.locator("button[type=submit]").click()
    expect(page).to_have_url(re.compile("compare=3&compare=1"))
    expect(beside.locator("thead th")).to_have_count(3)
    beside.locator("thead a[href^='?']").first.click()
    expect(page).to_have_url(re.compile("base=3"))
