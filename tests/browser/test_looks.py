"""Looking at a training in the browser: the preview before it, the strip along its way, the layers after it."""

from __future__ import annotations

import json
import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import in_both_looks
from tests.factories import training as factory
from tests.factories import work
from training.runs import previews
from training.runs.models import TrainingJob

PREVIEW = {
    "images": {"learn": 1200, "score": 6}, "counted": "objects",
    "classes": [{"name": "bright", "count": 700}, {"name": "dark", "count": 90}],
    "input": [320, 240], "window": None, "resize": "stretch", "objects": 790, "lost": 2, "batch_size": 16,
    "sizes": [{"below": 8, "count": 2}, {"below": 16, "count": 300}, {"below": None, "count": 488}],
    "steps_per_epoch": 75, "pictures": 8, "prepared_s": 3.0,
    "originals": {"smallest": [640, 480], "usual": [640, 480], "largest": [800, 600]},
    "network": {"weights": 108, "of_layers": 1,
                "layers": [{"name": "stem.0", "kind": "Conv2d", "answer": [4, 8, 8], "weights": 108}]},
    "steps_timed": 20, "step_ms": 100.0, "epoch_s": 7.5, "memory_mib": 512,
}  # fmt: skip
WEIGHTS = {"shape": [4, 3, 3, 3], "bins": [1, 3, 9, 4, 1], "from": -1.0, "to": 1.0, "mean": 0.0, "std": 0.5}
LAYER = {"number": 1, "name": "stem.0", "kind": "Conv2d", "shape": [4, 8, 8], "weights": {**WEIGHTS, "picture": True}}


@pytest.fixture
def machine(transactional_db):
    return work.node("node1", cores=4)


def picture(path, shade):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (240, 160), (shade, 90, 160)).save(path)


def drawn(look):
    """What a preview leaves before it times its steps."""
    run = factory.move(look, "running")
    for number in range(1, 9):
        picture(run.outputs / "preview" / f"batch-{number}.jpg", 20 * number)
        picture(run.outputs / "preview" / f"score-{number}.jpg", 255 - 20 * number)
    (run.outputs / "preview" / "preview.json").write_text(json.dumps({**PREVIEW, "epoch_s": None}))
    return run


def timed(run, look):
    (run.outputs / "preview" / "preview.json").write_text(json.dumps(PREVIEW))
    factory.move(look, "succeeded")


@in_both_looks
def test_preview_is_started_from_the_form_and_shown_beside_it(
    open_as, alice, machine, accessible, fits, shot, width, dark, language
):
    factory.version(alice, "cells")
    page = open_as(alice, width=width, height=844, dark=dark, language=language)
    page.goto("/training/new/")
    page.locator("#id_version").select_option(index=1)

    page.locator("button[hx-post='/training/preview/']").click()
    expect(page.locator("#preview .training-look")).to_be_visible()
    look = TrainingJob.objects.get()
    assert previews.mode_of(look) == "batch"
    run = drawn(look)

    expect(page.locator("#preview img")).to_have_count(8 + 6)
    expect(page.locator("#preview")).to_contain_text("bright")
    page.locator("#preview summary").click()
    expect(page.locator("#preview table")).to_contain_text("4 × 8 × 8")
    timed(run, look)
    expect(page.locator("#preview")).to_contain_text("7.5")  # the pass: the panel was fetched again
    expect(page.locator("#preview table")).to_be_visible()  # and what was opened stays open
    page.evaluate("scrollTo(0, 0)")  # the page was scrolled to the preview: the top bar may cover half a button
    accessible(page)
    fits(page)
    shot(page, f"training-preview-{width}")


@in_both_looks
def test_strip_moves_through_time_and_layers_are_shown(
    open_as, alice, machine, accessible, fits, shot, width, dark, language
):
    training = factory.training(alice, name="blood_cells")
    run = factory.move(training, "succeeded")
    factory.checkpoint(run, 30, metric=0.5)
    for step in (10, 20, 30):
        folder = run.outputs / "samples" / f"step-{step:06d}"
        for number in range(1, 7):
            picture(folder / f"{number}.jpg", 8 * step)
            picture(run.outputs / "samples" / "truth" / f"{number}.jpg", 250)
        (folder / "about.json").write_text(json.dumps({"metric": "val/ap50", "value": step / 100, "step": step}))
    look = previews.layers(training, by=alice)
    done = factory.move(look, "succeeded")
    for name in ("image-1", "cam-1", "01-1", "01-weights"):
        picture(done.outputs / "layers" / f"{name}.jpg", 128)
    cams = [{"image": 1, "class": "bright", "score": 0.75, "layer": "stem.0"}]
    about = {"images": [{"name": "a.png"}], "layers": [LAYER], "of_layers": 1, "cams": cams, "step": 30}
    (done.outputs / "layers" / "layers.json").write_text(json.dumps(about))
    page = open_as(alice, width=width, height=844, dark=dark, language=language)

    page.goto(f"/training/{training.pk}/images/")

    first = page.locator("[data-strip-image='1']")
    expect(page.locator("[data-strip-step]")).to_have_text("30")
    page.locator("[data-strip-slider]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-strip-step]")).to_have_text("20")
    expect(first).to_have_attribute(
        "src", f"/training/{training.pk}/files/1/content/?inline&path=samples%2Fstep-000020%2F1.jpg"
    )
    expect(first).to_have_js_property("naturalWidth", 240)
    expect(page.locator("#layers")).to_contain_text("stem.0")
    accessible(page)
    fits(page)
    shot(page, f"training-images-{width}")


def test_preview_is_offered_where_there_is_one(open_as, alice, machine):
    factory.version(alice, "digits", task="classification")
    page = open_as(alice)
    page.goto("/training/new/?preset=classify")
    act = page.locator("button[hx-post='/training/preview/']")
    expect(act).to_be_visible()

    page.goto("/training/new/?preset=hog_svm")

    expect(act).to_be_hidden()


def test_training_form_follows_the_preset_and_the_dataset(open_as, alice):
    work.node("node1", cores=4, gpus=1)
    factory.version(alice, "digits", task="classification")
    page = open_as(alice)
    page.goto("/training/new/?preset=classify")
    device, gpus = page.locator("#id_device"), page.locator("#id_gpus_per_node")

    expect(gpus).to_have_value("1")
    page.locator("input[name=preset][value=hog_svm]").check()
    expect(device).to_have_value("cpu")
    expect(gpus).to_have_value("0")
    page.locator("input[name=preset][value=classify]").check()
    expect(device).to_have_value("gpu")
    expect(gpus).to_have_value("1")
    expect(page.locator("input[name=preset][value=detect]")).to_be_visible()
    page.locator("#id_version").select_option(index=1)
    expect(page.locator("input[name=preset][value=detect]")).to_be_hidden()
    expect(page.locator("input[name=preset][value=detect]")).to_be_disabled()
    expect(page.locator("input[name=preset][value=hog_svm]")).to_be_visible()


@in_both_looks
def test_network_of_ones_own_is_written_in_the_form(
    open_as, alice, machine, accessible, fits, shot, width, dark, language
):
    factory.version(alice, "digits", task="classification")
    page = open_as(alice, width=width, height=844, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.goto("/training/new/?preset=classify")
    page.locator("#id_version").select_option(index=1)
    text, choice = page.locator("#id_classify__network"), page.locator("#id_classify__architecture")
    page.evaluate("document.querySelectorAll('#submit-form details').forEach(one => { one.open = true })")
    expect(text).to_be_hidden()

    choice.select_option("own")
    expect(text).to_be_visible()
    text.fill("def build(depth): pass")
    page.locator("#submit-form button.btn-primary").click()
    expect(page.locator(".form-row:has(#id_classify__network) .errors, .form-row.has-error")).to_contain_text("depth")
    page.get_by_role("button", name="small_cnn").click()
    expect(text).to_have_value(re.compile("def build"))
    accessible(page)
    fits(page)
    shot(page, f"training-own-network-{width}")
    page.locator("#submit-form button.btn-primary").click()
    page.wait_for_url(re.compile(r"/training/\d+/"))

    training = TrainingJob.objects.get()
    assert "AdaptiveAvgPool2d" in training.params["network"]
    expect(page.locator("pre.job-code")).to_contain_text("def build")
    fits(page)
    shot(page, f"training-own-network-job-{width}")
