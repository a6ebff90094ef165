"""Ten wrong answers sent back from the page of a service, with a real model server behind it."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from datasets.models import DatasetVersion, Import
from datasets.services import imports
from inference.registry import registration as registry
from inference.serving import endpoints
from inference.serving.feedback.models import ServiceSample
from tests.browser.conftest import in_both_looks
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.conftest import start_server
from tests.inference.running import running_at

TEN = 10


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    process, number = start_server(tiny.detector(tmp_path_factory.mktemp("model")), AIP_SERVICE_KEY="secret")
    yield number
    process.terminate()
    process.wait(10)


@in_both_looks
def test_ten_wrong_answers_go_from_the_page_into_an_annotated_dataset(
    open_as, alice, site, tmp_path, port, monkeypatch, accessible, fits, shot, width, dark, language
):
    made = factory.zipped(tiny.detector(tmp_path / "tiny"), tmp_path / "tiny.zip")
    version = registry.register_upload(user=alice, archive=made, filename=made.name, name="tiny")
    service = endpoints.create(user=alice, name="squares", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, service, port)
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/services/{service.pk}/")
    told, wrong = page.locator("#wrong [role=status]"), page.locator("#wrong button")
    for number in range(TEN):
        picture = tmp_path / f"{number}.png"
        picture.write_bytes(pictures.with_boxes({(16 + 4 * number, 32, 32 + 4 * number, 48): "green"}))
        page.set_input_files("#picture", picture)
        expect(wrong).to_be_visible()
        expect(told).to_be_empty()
        wrong.click()
        expect(told).not_to_be_empty()
        expect(wrong).to_be_disabled()
    accessible(page)
    fits(page)
    shot(page, f"wrong-{width}", full=True)
    assert ServiceSample.objects.count() == TEN

    page.goto(f"/services/{service.pk}/samples/")
    expect(page.locator(".samples li")).to_have_count(TEN)
    page.locator(".samples img").first.evaluate("image => image.decode()")
    accessible(page)
    fits(page)
    shot(page, f"samples-{width}")
    page.locator("#id_name").fill("back")
    page.locator(".sample-check").first.check()
    expect(page.locator(".samples-chosen")).to_be_visible()
    shot(page, f"samples-chosen-{width}")
    page.locator(".sample-check").first.uncheck()
    expect(page.locator(".samples-chosen")).to_be_hidden()
    page.locator("main form.samples-form button.btn-primary").click()
    expect(page).to_have_url(re.compile(r"/datasets/\d+/"))
    imports.run(Import.objects.get().pk)

    annotated = DatasetVersion.objects.get()
    assert (annotated.image_count, annotated.annotated) == (TEN, True)
    drawn = json.loads((annotated.path / "annotations.json").read_text())["annotations"]
    assert len(drawn) >= TEN
    page.reload()
    shot(page, f"came-back-{width}")
    page.goto(f"/services/{service.pk}/samples/")
    expect(page.locator(".samples")).to_have_count(0)
