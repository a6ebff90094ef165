"""Anomalies in a real browser: heat map and verdict on the page of a service, and where an evaluation was wrong."""

import numpy as np
import pytest
from django.urls import reverse
from PIL import Image

from inference.registry import registration as registry
from inference.serving import endpoints
from tests.browser.hands import until
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny
from tests.inference.conftest import start_server
from tests.inference.running import running_at

pytestmark = pytest.mark.long


@pytest.fixture
def model(alice, tmp_path):
    archive = factory.zipped(tiny.brightness(tmp_path / "brightness"), tmp_path / "brightness.zip")
    return registry.register_upload(user=alice, archive=archive, filename=archive.name, name="cloth")


@pytest.fixture
def service(site, alice, model, tmp_path, monkeypatch):
    process, port = start_server(tiny.brightness(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    made = endpoints.create(user=alice, name="cloth", model_version=model)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.fixture
def evaluation(site, alice, model, tmp_path):
    return judged.judged(alice, model, judged.dataset_version(alice, tmp_path / "data", task="classification"))


def colour_at(page, x: int, y: int) -> list[int]:
    """What the canvas shows at a pixel of a picture 128 wide."""
    return page.evaluate(
        "([x, y]) => { const c = document.getElementById('stage'); const s = c.width / 128;"
        " return [...c.getContext('2d').getImageData(x * s, y * s, 1, 1).data].slice(0, 3); }",
        [x, y],
    )


@pytest.mark.parametrize("look", [{}, {"dark": True, "width": 390, "language": "zh-hans"}], ids=["light", "dark"])
def test_service_page_shows_where_a_picture_is_unusual(open_as, alice, accessible, fits, shot, service, tmp_path, look):
    pixels = np.full((128, 128, 3), 40, np.uint8)
    pixels[64:, 64:] = 180
    picture = tmp_path / "cloth.png"
    picture.write_bytes(pictures.encoded(Image.fromarray(pixels)))
    page = open_as(alice, **look)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.locator("#answers .fail-text").wait_for()
    until(page, "document.getElementById('stage').getContext('2d').getImageData(0, 0, 1, 1).data[0] === 40")
    assert page.locator("#score").input_value() == "50"  # the model's own
    assert colour_at(page, 20, 20) == [40, 40, 40]
    assert page.evaluate(
        "new Promise((done) => { const look = () => { const c = document.getElementById('stage');"
        " const d = c.getContext('2d').getImageData(c.width * 0.8, c.height * 0.8, 1, 1).data;"
        " d[0] - d[1] > 60 ? done(true) : requestAnimationFrame(look); }; look(); })"
    )
    shot(page, f"try-it-anomaly-{'dark' if look else 'light'}")
    accessible(page)
    fits(page)
    page.locator("#score").fill("90")
    page.locator("#answers .ok-text").wait_for()
    page.locator("#cover").fill("0")
    assert colour_at(page, 100, 100) == [180, 180, 180]


@pytest.mark.parametrize("look", [{}, {"dark": True, "width": 390}], ids=["light", "dark"])
def test_evaluation_page_of_anomalies_shows_maps_and_opens_a_cell(
    open_as, alice, accessible, fits, shot, evaluation, look
):
    page = open_as(alice, **look)
    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]))
    page.locator(".judged").first.wait_for(state="attached")
    shot(page, f"evaluation-anomaly-{'dark' if look else 'light'}")
    accessible(page)
    fits(page)

    page.locator("#confusion button[class^=wrong]").first.click()

    page.get_by_text("Images where").wait_for()
    assert page.locator(".error-map").count() >= 1
