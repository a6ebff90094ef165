"""What an evaluation tells, in a real browser: parts of its images, mistakes, thresholds, its report."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from datasets.models import Asset, Dataset
from inference.evaluation.models import EvaluationSet
from tests.browser.conftest import in_both_looks
from tests.inference import judged


@pytest.fixture
def made(alice, tmp_path, live_server):
    evaluation = judged.evaluation(alice, tmp_path, params={"altered_images": 2})
    lines = (evaluation.version.path / "manifest.jsonl").read_text().splitlines()
    Asset.objects.bulk_create(Asset(version=evaluation.version, **json.loads(line)) for line in lines)
    return evaluation


@in_both_looks
def test_evaluation_tells_its_weak_sides_and_leads_into_annotation(
    open_as, alice, made, tmp_path, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/evaluations/{made.pk}/")
    tabs = page.locator("[data-section-tabs]")
    expect(tabs.locator("[aria-current]")).to_have_attribute("href", "#overview")
    tabs.locator("a[href='#robustness']").click()
    expect(page.locator("#robustness-table tbody tr")).to_have_count(4)
    accessible(page)
    fits(page)
    tabs.locator("a[href='#slices']").click()
    page.locator("#h-slices").scroll_into_view_if_needed()
    expect(page.locator("#h-robustness")).to_be_hidden()
    expect(page.locator("#slice-objects tbody tr")).not_to_have_count(0)
    page.locator("#slices input[name=q]").fill("00")
    page.locator("#slices form button").click()
    expect(page.locator("#slice-table tbody tr").first).to_contain_text("5")
    accessible(page)
    tabs.locator("a[href='#calibration']").click()
    page.locator("#h-calibration").scroll_into_view_if_needed()
    expect(page.locator("#calibration svg.small-chart")).to_have_count(2)
    page.locator("#calibration input[name=missed]").fill("9")
    page.locator("#calibration form button").first.click()
    expect(page.locator("#calibration input[name=missed]")).to_have_value("9")
    expect(page.locator("#calibration svg.small-chart")).to_have_count(2)
    accessible(page)
    fits(page)
    shot(page, f"evaluation-judged-{width}", full=True)

    tabs.locator("a[href='#errors']").click()
    page.locator("#mistake-table a").first.click()
    expect(tabs.locator("[aria-current]")).to_have_attribute("href", "#images")
    expect(page.locator(".box-mistake").first).to_be_attached()
    accessible(page)
    shot(page, f"evaluation-mistake-{width}")
    page.locator("#gallery form button").click()
    expect(page).to_have_url(re.compile(f"/datasets/{Dataset.objects.order_by('-pk').first().pk}/"))

    page.goto(f"/evaluations/{made.pk}/")
    with page.expect_download() as saved:
        page.locator(f"a[href='/evaluations/{made.pk}/report/']").click()
    file = tmp_path / "report.html"
    saved.value.save_as(file)
    page.goto(f"file://{file}")
    expect(page.locator("#report-objects tbody tr")).not_to_have_count(0)
    accessible(page)
    fits(page)
    shot(page, f"evaluation-report-{width}", full=True)


@in_both_looks
def test_parameters_of_an_evaluation_are_kept_and_taken_again(
    open_as, alice, made, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/evaluations/sets/new/?evaluation={made.pk}")
    page.locator("input[name=name]").fill("careful")
    accessible(page)
    fits(page)
    page.locator("main form button.btn-primary").click()
    page.wait_for_url("**/evaluations/sets/*/")
    accessible(page)
    fits(page)
    shot(page, f"evaluation-set-{width}")
    page.goto("/evaluations/sets/")
    accessible(page)
    fits(page)
    page.locator("main .actions a").click()
    row = EvaluationSet.objects.get()
    expect(page.locator("select[name=parameter_set]")).to_have_value(str(row.pk))
    page.locator("button[name=import]").click()
    expect(page.locator("select[name=version]")).to_have_value(str(row.version_id))
    accessible(page)
    fits(page)
    shot(page, f"evaluation-new-{width}")
