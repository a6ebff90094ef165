"""Outlines in a real browser: on the page of a service, and where an evaluation shows what was found."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny
from tests.inference.conftest import start_server
from tests.inference.running import running_at

pytestmark = pytest.mark.long


@pytest.fixture
def service(site, alice, tmp_path, monkeypatch):
    process, port = start_server(tiny.instancer(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    version = factory.model_version(alice, tmp_path, name="tiny", task="instances")
    made = endpoints.create(user=alice, name="colours", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.fixture
def evaluation(site, alice, tmp_path):
    return judged.evaluation(alice, tmp_path, task="instances")


def colour_at(page, x: int, y: int) -> list[int]:
    """What the canvas shows at a pixel of a picture 128 wide."""
    return page.evaluate(
        "([x, y]) => { const c = document.getElementById('stage'); const s = c.width / 128;"
        " return [...c.getContext('2d').getImageData(x * s, y * s, 1, 1).data].slice(0, 3); }",
        [x, y],
    )


def test_service_page_draws_outlines_above_the_threshold(open_as, alice, accessible, shot, service, tmp_path):
    picture = tmp_path / "colours.png"
    picture.write_bytes(pictures.with_boxes({(16, 64, 32, 80): "red", (96, 64, 106, 80): "green"}))
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.get_by_text("2 objects: red 1, green 1").wait_for()
    assert colour_at(page, 24, 72) != [255, 0, 0]
    assert colour_at(page, 60, 110) == [0, 0, 0]  # ground
    shot(page, "try-it-outlines")
    accessible(page)
    page.locator("#score").fill("90")
    page.get_by_text("1 object: red 1").wait_for()
    assert colour_at(page, 101, 72) == [0, 255, 0]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)], ids=["light", "dark"])
def test_evaluation_page_of_instances_shows_outlines_and_follows_the_threshold(
    open_as, alice, accessible, fits, shot, evaluation, width, dark
):
    page = open_as(alice, dark=dark, width=width)
    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]) + "#images")
    page.locator(".judged").first.wait_for()
    assert page.locator("path.box-truth").count() > 10
    shown = page.locator("path.box-answer:visible").count()
    assert shown > 0
    fills = page.locator(".judged path").evaluate_all("all => all.map((one) => getComputedStyle(one).fill)")
    assert set(fills) == {"none"}  # the image is seen through what is drawn on it
    shot(page, f"evaluation-outlines-{'dark' if dark else 'light'}")
    accessible(page)
    fits(page)

    page.locator("#threshold").fill("100")

    expect(page.locator("path.box-answer:visible")).not_to_have_count(shown)
