"""Groups of devices in a real browser: made, filled, released to."""

from __future__ import annotations

import re

from PIL import Image
from playwright.sync_api import expect

from inference.delivery.edge import fleet, sampling, speeds
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference import pictures


@in_both_looks
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
    fleet.report(EdgeDevice.objects.select_related("group__wanted", "group__before").get(), {
        "outcome": "failed_self_test", "detail": "no such operator", "samples": "on",
        "hardware": {"cores": 4, "machine": "aarch64", "model": "Raspberry Pi 5"},
        "log": [[1_700_000_000_000 + 1000 * number, f"no such operator {number}"] for number in range(40)],
        "speed": {"package": device.group.wanted.sha256, "p50_ms": 21.4, "p95_ms": 30, "runs": 50, "threads": 4,
                  "provider": "CPUExecutionProvider"},
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
    expect(page.locator("#device-log")).to_contain_text("no such operator 39")
    shot(page, f"edge-device-{width}", full=True)
    page.goto("/edge/")
    accessible(page)
    fits(page)
    shot(page, f"edge-list-{width}", full=True)


@in_both_looks
def test_rule_is_set_pictures_come_and_a_dataset_is_made(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path)
    group = fleet.create(user=alice, name="Gates")
    fleet.add_device(group=group, name="gate-1", by=alice)
    group = fleet.release(group=group, version=version, share=100, by=alice)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/edge/{group.pk}/samples/")
    accessible(page)
    fits(page)
    shot(page, f"edge-samples-none-{width}", full=True)

    page.locator("#id_keep_below").fill("50")
    page.locator("section[aria-labelledby=h-rule] button, aside[aria-labelledby=h-rule] button").click()
    expect(page.locator("#id_keep_below")).to_have_value("50")
    device = EdgeDevice.objects.select_related("group__wanted", "group__before", "group__owner").get()
    for number in range(3):
        image = Image.new("RGB", (320, 240), (80 * number, 90, 120))
        sampling.store(
            device=device, picture=pictures.encoded(image, "JPEG"), why="low_score", package=group.wanted.sha256,
            answers=[{"name": "red", "score": 0.3, "box": [10, 10, 90, 90]}],
        )  # fmt: skip
    page.reload()
    expect(page.locator("ul.samples li")).to_have_count(3)
    accessible(page)
    fits(page)
    shot(page, f"edge-samples-{width}", full=True)
    page.goto(f"/edge/{group.pk}/")
    accessible(page)
    fits(page)
    shot(page, f"edge-group-keeps-{width}", full=True)

    figures = {"package": group.wanted.sha256, "p50_ms": 21.4, "p95_ms": 30, "runs": 50, "threads": 4,
               "provider": "CPUExecutionProvider", "memory_mib": 81.0}  # fmt: skip
    speeds.record(device, figures, hardware={"model": "Raspberry Pi 5", "machine": "aarch64"})
    page.goto(f"/models/{version.model_id}/")
    expect(page.locator("section[aria-labelledby=h-hardware] tbody tr")).to_have_count(1)
    accessible(page)
    fits(page)
    page.locator("section[aria-labelledby=h-hardware]").scroll_into_view_if_needed()
    shot(page, f"edge-hardware-{width}")

    page.goto(f"/edge/{group.pk}/samples/")
    page.locator("main form.samples-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/datasets/"))
