"""A model from elsewhere in a real browser: tried on pictures, the right way seen and chosen."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from inference.registry.models import ModelTask, ModelVersion
from tests.browser.conftest import in_both_looks
from tests.inference import seeing, tried


@in_both_looks
def test_model_is_tried_on_pictures_and_the_right_way_is_used(
    open_as, alice, site, tmp_path, accessible, fits, shot, width, dark, language
):
    path = seeing.model(tmp_path / "net.onnx", "yolo")
    for place in range(2):
        (tmp_path / f"{place}.png").write_bytes(seeing.picture(seed=place))
    data = seeing.annotated(alice)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/models/new/")
    page.set_input_files("[data-file]", path)
    page.locator("#id_name").fill("finder")
    page.locator("[data-submit]").click()
    page.locator("section[aria-labelledby=h-try] form button").click()
    expect(page.locator("#id_pictures_error")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"trial-refused-{width}", full=True)

    page.locator("section[aria-labelledby=h-detected] summary").click()
    page.locator("#id_labels").fill("\n".join(seeing.CLASSES))
    page.locator("section[aria-labelledby=h-detected] form button").click()
    page.locator("#id_pictures").set_input_files([tmp_path / "0.png", tmp_path / "1.png"])
    page.locator("#id_dataset").select_option(str(data.pk))
    page.locator("section[aria-labelledby=h-try] form button").click()
    expect(page.locator("#import-trial .chip")).to_be_visible()
    task = ModelTask.objects.get()

    said = tried.ran(task)
    page.reload()
    ways = page.locator(".trial-ways > li")
    expect(ways.first.locator("figure.judged")).to_have_count(5)
    assert ways.count() == len(task.figures["best"]), said
    assert ways.first.locator("rect.box-answer").count() >= 4
    assert ways.first.locator("rect.box-truth").count() == 2
    assert ways.first.locator("image").first.evaluate("one => fetch(one.href.baseVal).then(answer => answer.ok)")
    accessible(page)
    fits(page)
    shot(page, f"trial-ways-{width}", full=True)

    ways.first.locator("button").click()
    expect(page).to_have_url(re.compile(r"/models/\d+/\?version=1"))
    assert ModelVersion.objects.get().model.name == "finder"
    page.goto(f"/jobs/{task.job_id}/")
    expect(page.locator("section[aria-labelledby=h-trial] a.btn-primary")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"trial-used-{width}", full=True)
