"""Neighbours in a real browser: on the page of a service, and on that of an evaluation."""

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
    process, port = start_server(tiny.embedder(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    version = factory.model_version(alice, tmp_path, name="tiny", task="embedding")
    made = endpoints.create(user=alice, name="likes", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 390)], ids=["light", "dark"])
def test_service_page_lists_the_nearest_known_images(
    open_as, alice, accessible, fits, shot, service, tmp_path, dark, width
):
    picture = tmp_path / "green.png"
    picture.write_bytes(pictures.plain("green"))
    page = open_as(alice, dark=dark, width=width)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.locator(".answer-near").nth(10).wait_for()
    assert page.locator(".answer-near").first.inner_text().startswith("green")
    assert "green-0" in page.locator(".answer-near").nth(1).inner_text()
    page.locator("#answers").scroll_into_view_if_needed()
    shot(page, f"try-it-neighbours-{width}")
    accessible(page)
    fits(page)


@pytest.mark.parametrize("width", [1440, 390])
def test_evaluation_page_of_an_embedder_shows_figures_and_opens_a_cell(
    open_as, alice, accessible, fits, shot, site, tmp_path, width
):
    made = judged.evaluation(alice, tmp_path, task="embedding")
    page = open_as(alice, width=width)
    page.goto(reverse("inference:evaluation-detail", args=[made.pk]))
    page.locator(".judged").first.wait_for(state="attached")
    shot(page, f"evaluation-neighbours-{width}")
    accessible(page)
    fits(page)

    page.locator("#confusion button[class^=wrong]").first.click()

    page.get_by_text("Images where").wait_for()
    assert page.locator(".judged").count() >= 1
