"""Samples of packages and programs of torch on the page of a version, and a device whose answers differ."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from inference.delivery.edge import fleet
from inference.delivery.edge.models import EdgeDevice
from inference.kit.models import selftest
from inference.registry.models import ModelTask, ModelVersion
from inference.registry.selftest.models import SelfTest
from tests.factories import models as factory
from tests.inference import judged

FACTS = {"sample": 3, "samples": 4, "kind": selftest.SCORE, "largest": 0.31, "tolerance": 0.01}


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-CN")], ids=["wide", "narrow-chinese"]
)
def test_pages_say_what_packages_carry_and_which_device_answers_otherwise(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    version = factory.model_version(alice, tmp_path, task="classification")
    data = judged.dataset_version(alice, tmp_path / "data")
    SelfTest.objects.create(version=version, data=data, data_label=str(data), samples=4, pictures=2)
    files = [*version.files, {"name": "model.safetensors", "size": 1, "sha256": ""}]
    fields = {"source": "training", "preset": "classify", "architecture": "lenet5", "files": files}
    ModelVersion.objects.filter(pk=version.pk).update(**fields)
    group = fleet.create(user=alice, name="Gates")
    device, _code = fleet.add_device(group=group, name="gate-1", by=alice)
    EdgeDevice.objects.update(outcome="answers_differ", differs=FACTS, token_digest="x")
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)

    page.goto(f"/models/{version.model_id}/")
    expect(page.locator("section[aria-labelledby=h-selftest]")).to_contain_text("colours_detection v1")
    accessible(page)
    fits(page)
    shot(page, f"self-test-{width}", full=True)
    page.locator("section[aria-labelledby=h-torch] button").click()
    expect(page.locator("section[aria-labelledby=h-torch] a").first).to_be_visible()
    assert ModelTask.objects.get().act == "torch"
    accessible(page)
    page.locator("section[aria-labelledby=h-selftest] a").click()
    page.locator("#id_packages_pictures").uncheck()
    accessible(page)
    shot(page, f"self-test-pictures-{width}", full=True)
    page.locator("form .btn-primary").click()
    expect(page.locator("section[aria-labelledby=h-selftest]")).not_to_contain_text("colours_detection v1")
    page.goto(f"/edge/{group.pk}/")
    expect(page.locator("section[aria-labelledby=h-devices]")).to_contain_text("0.31")
    accessible(page)
    shot(page, f"self-test-devices-{width}", full=True)
    page.goto(f"/edge/devices/{device.pk}/")
    accessible(page)
    fits(page)
