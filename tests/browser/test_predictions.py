"""Predictions in a real browser: asked for, answered while one looks, taken along, made a dataset."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from aiplatform import env
from datasets.models import Dataset
from datasets.services import imports
from inference.batch.models import PredictedData, Prediction
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference import predicted, versions


@pytest.fixture
def data(alice, tmp_path, monkeypatch):
    """A version of fifteen pictures, one of which is damaged after it came in."""
    made = versions.detection(tmp_path / "made", images=15)
    monkeypatch.setattr(env, "SERVER_PATHS", [str(tmp_path)])
    dataset = Dataset.objects.create(owner=alice, name="shelf", intro="")
    row = imports.start(dataset=dataset, by=alice, server_path=f"{made}/images/", agreed=True, wanted="images")
    imports.run(row.pk)
    row.refresh_from_db()
    (made / "images" / "003.png").write_bytes(b"no picture any more")
    return row.version


@in_both_looks
def test_pictures_are_answered_taken_along_and_made_a_version(
    open_as, alice, site, tmp_path, data, accessible, fits, shot, width, dark, language
):
    model = factory.model_version(alice, tmp_path)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("status of 422")
    page.watch.allow("status of 404")
    page.goto("/predictions/")
    accessible(page)
    shot(page, f"predictions-none-{width}")
    page.locator("main a.btn-primary").first.click()
    page.locator("#id_model_version").select_option(str(model.pk))
    page.locator("#submit-form button.btn-primary").click()
    expect(
        page.locator("#submit-form [id$=error], #submit-form .field-error, #submit-form .errorlist").first
    ).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"prediction-refused-{width}", full=True)
    page.locator("#id_version").select_option(str(data.pk))
    page.locator("#submit-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/predictions/\d+/$"))
    accessible(page)
    shot(page, f"prediction-waits-{width}", full=True)

    prediction = Prediction.objects.get()
    said = predicted.ran(prediction)
    expect(page.locator("figure.judged")).to_have_count(12, timeout=10_000)
    assert prediction.summary["broken"] == 1, said
    page.locator(".more-row button").click()
    expect(page.locator("figure.judged")).to_have_count(14)
    assert page.locator("figure.judged rect.box-answer").count() > 14
    page.locator("details.card summary").click()
    expect(page.get_by_text("003.png")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"prediction-done-{width}", full=True)
    with page.expect_download() as taken:
        page.locator("a[href$='/download/csv/']").click()
    assert taken.value.path().read_text(encoding="utf-8-sig").startswith("path,width,height")
    page.locator("form[action$='/version/'] button").click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/$"))

    row = PredictedData.objects.get().intake
    imports.run(row.pk)
    row.refresh_from_db()
    assert row.state == "done", row.error
    assert row.version.annotation_count == prediction.summary["predictions"]
    page.goto(f"/predictions/{prediction.pk}/")
    expect(page.get_by_role("link", name=str(row.version))).to_be_visible()
    page.goto(f"/datasets/{row.dataset_id}/")
    accessible(page)
    fits(page)
    shot(page, f"prediction-version-{width}", full=True)
    page.goto("/predictions/")
    accessible(page)
    fits(page)
    shot(page, f"predictions-{width}")
