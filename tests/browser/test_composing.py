"""Composed versions in a real browser: chosen, refused in words, made, and what they are made of."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.registry.models import ModelVersion
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory


@in_both_looks
def test_versions_are_composed_on_a_page(open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language):
    one, two = (factory.model_version(alice, tmp_path, name=name) for name in ("shelves", "crates"))
    kinds = factory.model_version(alice, tmp_path, name="kinds", task="classification")
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/models/")
    page.locator("main a[href='/models/compose/'], header a[href='/models/compose/']").first.click()
    expect(page.locator("#compose-form")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"compose-{width}", full=True)

    page.locator("#id_part1").select_option(str(one.pk))
    page.locator("#id_part2").select_option(str(kinds.pk))
    page.locator("#id_weight1").fill("0")
    page.locator("#compose-form button.btn-primary").click()
    expect(page.locator("#compose-form [aria-invalid=true]").first).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"compose-refused-{width}", full=True)
    page.locator("#id_part2").select_option(str(two.pk))
    page.locator("#id_weight1").fill("2")
    page.locator("#compose-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/models/\d+/\?version=1$"))
    expect(page.locator("#parts tbody tr")).to_have_count(2)
    accessible(page)
    fits(page)
    shot(page, f"composed-{width}", full=True)
    page.locator("#parts a").first.click()
    expect(page).to_have_url(re.compile(rf"/models/{one.model_id}/\?version=1$"))

    page.goto("/models/compose/?kind=chain")
    page.locator("#id_first").select_option(str(one.pk))
    page.locator("#id_second").select_option(str(kinds.pk))
    page.locator("#id_only").fill("red")
    accessible(page)
    fits(page)
    shot(page, f"compose-chain-{width}", full=True)
    page.locator("#compose-form button.btn-primary").click()
    expect(page.locator("#parts tbody tr")).to_have_count(2)
    fits(page)
    shot(page, f"chain-{width}", full=True)
    assert ModelVersion.objects.filter(source="compose").count() == 2
