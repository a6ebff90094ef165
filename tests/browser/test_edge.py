"""Groups of devices in a real browser: made, filled, released to."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from inference.edge import fleet
from inference.edge.tables import EdgeDevice, EdgeGroup
from tests.factories import models as factory


@pytest.mark.parametrize(
    ("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-CN")], ids=["wide", "narrow-chinese"]
)
def test_group_is_made_a_device_added_and_a_model_released(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto("/edge/")
    accessible(page)
    page.locator("main a.btn-primary").first.click()
    page.locator("#id_name").fill("Gates")
    page.locator("main form.card button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/edge/\d+/$"))

    page.locator("section[aria-labelledby=h-add] input[name=name]").fill("gate-1")
    page.locator("section[aria-labelledby=h-add] button").click()
    expect(page.locator("#edge-command")).to_contain_text("aip-edge.pyz enrol --server http")
    accessible(page)
    fits(page)
    shot(page, f"edge-code-{width}", full=True)

    page.locator("section[aria-labelledby=h-release] select[name=version]").select_option(str(version.pk))
    page.locator("section[aria-labelledby=h-release] button").click()
    expect(page.locator("section[aria-labelledby=h-devices] tbody tr")).to_have_count(1)
    device = EdgeDevice.objects.get()
    assert EdgeGroup.objects.get().share == 10
    EdgeDevice.objects.update(token_digest="x")
    fleet.report(EdgeDevice.objects.select_related("group__wanted").get(), {
        "outcome": "failed_self_test", "detail": "no such operator", "hardware": {"cores": 4, "machine": "aarch64"},
    })  # fmt: skip
    page.reload()
    expect(page.locator("[role=alert]")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"edge-halted-{width}", full=True)

    page.goto(f"/edge/devices/{device.pk}/")
    expect(page.locator("section[aria-labelledby=h-reports] tbody tr")).to_have_count(1)
    accessible(page)
    fits(page)
    shot(page, f"edge-device-{width}", full=True)
    page.goto("/edge/")
    accessible(page)
    fits(page)
    shot(page, f"edge-list-{width}", full=True)
