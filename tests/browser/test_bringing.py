"""A model from another program in a real browser: brought in, and its speed measured."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.registry.models import ModelTask, ModelVersion
from tests.browser.conftest import in_both_looks
from tests.inference import foreign
from tests.inference.running import set_state

FIGURES = {
    "p50_ms": 4.2, "p95_ms": 5.1, "images_per_s": 812.5, "batch": 8, "threads": 2, "memory_mib": 61.0, "load_ms": 20.0,
    "busy": 1.0, "provider": "CPUExecutionProvider", "processor": "A processor", "node": "box-7",
}  # fmt: skip


@in_both_looks
def test_model_of_another_program_is_brought_in_and_measured(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    path = foreign.net(tmp_path / "pets.onnx", {"answer": foreign.LOGITS})
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/models/new/")
    page.locator("[data-submit]").click()
    expect(page.locator("[data-choose]")).to_be_focused()
    expect(page.locator("[data-file-error] .form-error")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"bring-{width}", full=True)

    page.set_input_files("[data-file]", path)
    expect(page.locator("#id_name")).to_have_value("pets")
    page.locator("[data-submit]").click()
    expect(page).to_have_url(re.compile(r"/models/imports/\d+/$"))
    expect(page.locator("#h-detected + .notice")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"detected-{width}", full=True)

    page.locator("section[aria-labelledby=h-detected] summary").click()
    page.locator("#id_task").select_option("classification")
    page.locator("#id_labels").fill("cat")
    page.locator("section[aria-labelledby=h-detected] form button").click()
    expect(page.locator("#id_labels_error")).to_contain_text("2")
    accessible(page)
    fits(page)
    shot(page, f"bring-refused-{width}", full=True)
    page.locator("#id_labels").fill("cat\ndog")
    page.locator("#id_pixels").select_option("unit")
    page.locator("#id_layout").select_option("logits")
    page.locator("section[aria-labelledby=h-detected] form button").click()
    expect(page.locator("#h-detected + .notice")).to_have_count(0)
    page.locator("section[aria-labelledby=h-confirm] button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/models/\d+/\?version=1"))
    assert ModelVersion.objects.get().task == "classification"

    page.locator("section[aria-labelledby=h-speed] button").click()
    table = page.locator("section[aria-labelledby=h-speed] tbody tr")
    expect(table).to_have_count(1)
    set_state(ModelTask.objects.get().job, "running")
    ModelTask.objects.update(figures=FIGURES)
    expect(table).to_contain_text("box-7")
    accessible(page)
    fits(page)
    shot(page, f"measured-{width}", full=True)
