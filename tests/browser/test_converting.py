"""Conversions in a real browser: asked for, watched, kept."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.conversion.models import Conversion
from inference.registry.models import ModelVersion
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference import converted, judged


@in_both_looks
def test_model_is_converted_and_a_variant_is_kept(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/conversions/")
    accessible(page)
    shot(page, f"conversions-none-{width}")
    page.locator("main a.btn-primary").first.click()
    page.locator("#id_model_version").select_option(str(version.pk))
    page.locator("#id_version").select_option(str(data.pk))
    for box in page.locator("input[name=targets]").all():
        box.uncheck()
    page.locator("details:has(#id_keep) > summary").click()
    page.locator("#id_keep").select_option("none")
    page.locator("#submit-form button.btn-primary").click()
    expect(page.locator("fieldset.has-error")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"conversion-refused-{width}", full=True)
    page.locator("input[name=targets][value=fp16]").check()
    page.locator("input[name=targets][value=int8]").check()
    page.locator("#submit-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/conversions/\d+/$"))
    shot(page, f"conversion-waits-{width}", full=True)

    converted.ran(Conversion.objects.get())
    keep = page.locator("section[aria-labelledby=h-variants] tbody tr").nth(2).locator("button")
    expect(keep).to_be_visible(timeout=10_000)
    accessible(page)
    fits(page)
    shot(page, f"conversion-done-{width}", full=True)
    keep.click()
    expect(page).to_have_url(re.compile(r"/models/\d+/\?version=2"))
    assert ModelVersion.objects.get(number=2).source == "convert"
    accessible(page)
    shot(page, f"conversion-kept-{width}", full=True)
