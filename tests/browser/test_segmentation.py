"""Masks in a real browser: on the page of a service, and where an evaluation shows what was wrong."""

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
    process, port = start_server(tiny.segmenter(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    version = factory.model_version(alice, tmp_path, name="tiny", task="segmentation")
    made = endpoints.create(user=alice, name="colours", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.fixture
def evaluation(site, alice, tmp_path):
    return judged.evaluation(alice, tmp_path, task="segmentation")


def colour_at(page, x: int, y: int) -> list[int]:
    """What the canvas shows at a pixel of a picture 128 wide."""
    return page.evaluate(
        "([x, y]) => { const c = document.getElementById('stage'); const s = c.width / 128;"
        " return [...c.getContext('2d').getImageData(x * s, y * s, 1, 1).data].slice(0, 3); }",
        [x, y],
    )


def test_service_page_draws_masks_that_can_be_faded_and_switched_off(
    open_as, alice, accessible, shot, service, tmp_path
):
    picture = tmp_path / "colours.png"
    picture.write_bytes(pictures.with_boxes({(0, 0, 64, 128): "red", (96, 32, 128, 64): "green"}))
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.locator(".answer-mask", has_text="green").wait_for()
    covered = colour_at(page, 20, 100)
    assert covered != [255, 0, 0]
    assert colour_at(page, 80, 20) == [0, 0, 0]  # ground
    shot(page, "try-it-masks")
    accessible(page)
    page.locator("#cover").fill("0")
    assert colour_at(page, 20, 100) == [255, 0, 0]
    page.locator("#cover").fill("55")
    assert colour_at(page, 20, 100) == covered
    page.locator(".answer-mask", has_text="red").get_by_role("checkbox").uncheck()
    assert colour_at(page, 20, 100) == [255, 0, 0]
    assert colour_at(page, 110, 48) != [0, 255, 0]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_evaluation_page_of_a_segmenter_shows_errors_and_opens_a_cell(
    open_as, alice, accessible, shot, evaluation, dark
):
    page = open_as(alice, dark=dark)
    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]))
    page.locator(".judged").first.wait_for(state="attached")
    shot(page, f"evaluation-masks-{'dark' if dark else 'light'}")
    accessible(page)

    page.locator("#confusion button[class^=wrong]").first.click()

    page.get_by_text("Images where").wait_for()
    assert page.locator("#confusion tbody th").all_inner_texts()[-1] == "background"
    assert page.locator(".error-map").count() >= 1


@pytest.mark.parametrize("width", [1440, 390])
def test_pages_of_a_segmenter_fit_their_window(open_as, alice, fits, evaluation, width):
    page = open_as(alice, width=width)

    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]))

    fits(page)
