"""Tags in a real browser: on the page of a service, and on that of an evaluation."""

import pytest
from django.urls import reverse

from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny
from tests.inference.conftest import start_server
from tests.inference.running import running_at

pytestmark = pytest.mark.long


@pytest.fixture
def service(site, alice, tmp_path, monkeypatch):
    process, port = start_server(tiny.tagger(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    version = factory.model_version(alice, tmp_path, name="tiny", task="tagging")
    made = endpoints.create(user=alice, name="tags", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.mark.parametrize(
    "look", [{"width": 1440}, {"dark": True, "width": 390, "language": "zh-hans"}], ids=["light", "dark"]
)
def test_service_page_shows_which_classes_are_on_a_picture(
    open_as, alice, accessible, fits, shot, service, tmp_path, look
):
    picture = tmp_path / "colours.png"
    picture.write_bytes(pictures.with_boxes({(0, 0, 64, 64): "red", (64, 64, 128, 128): "blue"}))
    page = open_as(alice, **look)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.locator("#answers .answer-row").nth(2).wait_for()
    assert page.locator("#score").input_value() == "50"  # the model's own
    assert page.locator("#answers .tag").all_inner_texts() == ["red", "blue"]
    page.locator("#answers").scroll_into_view_if_needed()
    shot(page, f"try-it-tags-{look['width']}")
    accessible(page)
    fits(page)
    page.locator("#score").fill("5")
    assert page.locator("#answers .tag").all_inner_texts() == ["red", "blue", "green"]


@pytest.mark.parametrize(
    "look", [{"width": 1440}, {"dark": True, "width": 390, "language": "zh-hans"}], ids=["light", "dark"]
)
def test_evaluation_page_of_tags_begins_at_the_models_threshold_and_opens_a_cell(
    open_as, alice, accessible, fits, shot, site, tmp_path, look
):
    made = judged.evaluation(alice, tmp_path, task="tagging")
    page = open_as(alice, **look)
    page.goto(reverse("inference:evaluation-detail", args=[made.pk]))
    page.locator(".judged").first.wait_for(state="attached")
    assert page.locator("#threshold-value").inner_text() == "0.50"
    shot(page, f"evaluation-tags-{look['width']}")
    accessible(page)
    fits(page)

    before = float(page.locator('[data-live="f1"]').inner_text())
    page.locator("#threshold-best").click()
    assert float(page.locator('[data-live="f1"]').inner_text()) >= before
    page.locator("#confusion button[class^=wrong]").first.click()

    page.locator("#gallery .link-btn").wait_for()
    assert page.locator(".judged").count() >= 1
