"""Going on with what a job left, and large-scale mode, in the browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from datasets.models import Import
from tests.factories import training as factory
from tests.factories import work
from workers.core.runs import RunDir

pytestmark = pytest.mark.long

LOOKS = pytest.mark.parametrize(
    ("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-CN")], ids=["wide", "narrow-chinese"]
)


@LOOKS
def test_dataset_is_made_of_the_outputs_of_a_job(
    open_as, alice, own_cluster, accessible, fits, shot, width, dark, language
):
    job = work.job(alice, own_cluster, name="augment", state="succeeded")
    outputs = RunDir.for_attempt(job.pk, 1).outputs
    outputs.mkdir(parents=True)
    (outputs / "made.txt").write_text("x")
    page = open_as(alice, width=width, height=844, dark=dark, language=language)
    page.goto(f"/jobs/{job.pk}/?tab=files")

    expect(page.locator(f"a[href='/commands/new/?outputs_of={job.pk}']")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"job-outputs-{width}", full=True)
    page.locator("#output-name").fill("more")
    page.locator("form[action$='/dataset/'] button[type=submit]").click()
    page.wait_for_url("**/datasets/*/imports/*/")

    assert Import.objects.get().dataset.name == "more"


@LOOKS
def test_large_scale_mode_fills_in_nothing(open_as, alice, own_cluster, accessible, fits, shot, width, dark, language):
    work.node("node1", cores=4)
    factory.version(alice, "cells")
    page = open_as(alice, width=width, height=844, dark=dark, language=language)
    page.goto("/training/new/?preset=detect")
    page.locator(".page-actions summary").click()
    page.locator("a[href='?explicit=1']").click()

    page.locator("input[name=preset][value=detect]").check()
    page.locator("#id_version").select_option(index=1)
    expect(page.locator("#id_detect__batch_size")).to_have_value("")
    accessible(page)
    fits(page)
    page.watch.allow("status of 422")
    page.locator("[data-submit]").click()

    expect(page.locator(".training-of[data-of=detect] .form-error").first).to_be_visible()
    shot(page, f"training-explicit-{width}")


@pytest.fixture
def own_cluster(transactional_db, cluster):
    return cluster
