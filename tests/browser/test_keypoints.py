"""Keypoints in a real browser: an object chosen by drawing and by keyboard, and where an evaluation shows errors."""

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
    process, port = start_server(tiny.pointer(tmp_path / "server"), AIP_SERVICE_KEY="secret")
    version = factory.model_version(alice, tmp_path, name="tiny", task="keypoints")
    made = endpoints.create(user=alice, name="middles", model_version=version)
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    yield made
    process.terminate()
    process.wait(10)


@pytest.fixture
def evaluation(site, alice, tmp_path):
    return judged.evaluation(alice, tmp_path, task="keypoints")


def test_service_page_finds_the_points_of_the_object_somebody_draws_or_types(
    open_as, alice, accessible, shot, service, tmp_path
):
    picture = tmp_path / "two.png"
    picture.write_bytes(pictures.with_boxes({(20, 80, 40, 100): "red", (100, 20, 110, 30): "green"}))
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))
    assert page.locator("#region-x1").is_disabled()

    page.set_input_files("#picture", picture)

    page.locator(".answer-point", has_text="middle_of_red").wait_for()
    stage = page.locator("#stage").bounding_box()
    unit = stage["width"] / 128
    page.mouse.move(stage["x"] + 90 * unit, stage["y"] + 10 * unit)
    page.mouse.down()
    page.mouse.move(stage["x"] + 120 * unit, stage["y"] + 40 * unit)
    page.mouse.up()
    page.locator(".answer-point", has_text="middle_of_green").wait_for()
    shot(page, "try-it-keypoints")
    accessible(page)
    assert page.locator(".answer-point", has_text="middle_of_green").locator(".muted").inner_text() == "105, 25"
    page.locator("#region-whole").click()
    page.locator(".answer-point", has_text="middle_of_red").wait_for()
    for edge, value in (("x1", "90"), ("y1", "10"), ("x2", "120"), ("y2", "40")):
        page.locator(f"#region-{edge}").fill(value)
    page.keyboard.press("Tab")
    page.locator(".answer-point", has_text="middle_of_green").wait_for()


@pytest.mark.parametrize(("dark", "width"), [(False, 1440), (True, 390)], ids=["light", "dark"])
def test_evaluation_page_of_keypoints_shows_truth_and_answer(
    open_as, alice, accessible, fits, shot, evaluation, dark, width
):
    page = open_as(alice, dark=dark, width=width)

    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]) + "#images")

    page.locator(".judged").first.wait_for()
    shot(page, f"evaluation-keypoints-{'dark' if dark else 'light'}")
    accessible(page)
    fits(page)
    assert page.locator(".judged").first.locator(".pose-dot.pose-truth").count() == 2
    assert page.locator("#pose-points tbody tr").count() == 3
