"""Models, evaluations and services in a real browser, with a real model server behind the proxy."""

import pytest
from django.urls import reverse

from inference.evaluation import results
from inference.serving import endpoints
from tests.factories import models as factory
from tests.inference import judged, pictures, tiny
from tests.inference.conftest import start_server
from tests.inference.running import running_at


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    process, number = start_server(tiny.detector(tmp_path_factory.mktemp("model")), AIP_SERVICE_KEY="secret")
    yield number
    process.terminate()
    process.wait(10)


@pytest.fixture
def service(site, alice, tmp_path, port, monkeypatch):
    made = endpoints.create(
        user=alice, name="squares", model_version=factory.model_version(alice, tmp_path, name="tiny")
    )
    monkeypatch.setattr(endpoints, "key_for", lambda job, attempt: "secret")
    running_at(monkeypatch, made, port)
    return made


@pytest.fixture
def evaluation(site, alice, tmp_path):
    return judged.evaluation(alice, tmp_path)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_inference_pages_have_no_accessibility_violation(open_as, alice, accessible, service, evaluation, dark):
    page = open_as(alice, dark=dark)

    for name, args in (
        ("model-list", []),
        ("model-detail", [service.model_version.model_id]),
        ("model-card", [service.model_version.model_id]),
        ("model-rules", [service.model_version.model_id]),
        ("model-rule-new", [service.model_version.model_id]),
        ("model-compose", []),
        ("model-upload", []),
        ("evaluation-list", []),
        ("evaluation-new", []),
        ("evaluation-detail", [evaluation.pk]),
        ("service-list", []),
        ("service-new", []),
        ("service-detail", [service.pk]),
        ("service-edit", [service.pk]),
    ):
        page.goto(reverse(f"inference:{name}", args=args))
        if name == "evaluation-detail":
            accessible(page)
            page.locator("[data-section-tabs] a[href='#images']").click()
            page.locator(".judged").first.wait_for()
        accessible(page)


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_inference_pages_fit_their_window(open_as, alice, fits, shot, service, evaluation, width):
    page = open_as(alice, width=width)

    for name, args in (
        ("evaluation-detail", [evaluation.pk]),
        ("service-detail", [service.pk]),
        ("service-edit", [service.pk]),
        ("service-list", []),
    ):
        page.goto(reverse(f"inference:{name}", args=args))
        fits(page)
        shot(page, f"{name}-{width}")


def test_service_page_answers_a_dropped_image_with_boxes(open_as, alice, shot, service, tmp_path):
    picture = tmp_path / "squares.png"
    picture.write_bytes(pictures.with_boxes({(16, 32, 32, 48): "green", (96, 0, 112, 16): "red"}))
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", picture)

    page.get_by_text("2 boxes: ").wait_for()
    assert "ms inference" in page.locator("#try-timing").inner_text()
    green = page.evaluate(
        "() => { const c = document.getElementById('stage'); const s = c.width / 128;"
        " return [...c.getContext('2d').getImageData(24 * s, 40 * s, 1, 1).data]; }"
    )
    assert green[:3] == [0, 255, 0]
    shot(page, "try-it")
    page.get_by_text("Ready").first.wait_for()


def test_service_page_answers_an_image_as_soon_as_a_starting_service_is_ready(open_as, alice, service, tmp_path):
    picture = tmp_path / "squares.png"
    picture.write_bytes(pictures.with_boxes({(16, 32, 32, 48): "green"}))
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))
    asked = []

    def starting_twice(route):
        asked.append(route.request.url)
        if len(asked) > 2:
            route.continue_()
        else:
            starting = {"code": "service_starting", "detail": "This endpoint is starting. Try again in a moment."}
            route.fulfill(status=202, json=starting)  # a 503 would fail the test by itself

    page.route("**/predict*", starting_twice)
    page.set_input_files("#picture", picture)

    page.get_by_text("as soon as it is ready").wait_for()
    page.get_by_text("1 box: ").wait_for()
    assert len(asked) == 3
    assert page.get_by_text("as soon as it is ready").count() == 0


def test_service_page_says_what_is_no_image(open_as, alice, service, tmp_path):
    text = tmp_path / "note.txt"
    text.write_text("hello")
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))

    page.set_input_files("#picture", text)

    page.get_by_role("alert").get_by_text("cannot display this image file").wait_for()


def test_evaluation_page_moves_the_threshold_and_opens_a_cell(open_as, alice, shot, evaluation):
    page = open_as(alice)
    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]))
    page.locator("#confusion button").first.wait_for()
    shot(page, "evaluation")
    before = page.locator("[data-live=precision]").inner_text()

    page.locator("#threshold").fill("70")

    assert page.locator("#threshold-value").inner_text() == "0.70"
    assert page.locator("[data-live=precision]").inner_text() != before
    page.locator("#confusion button[class^=wrong]").first.click()
    shown = page.locator(".gallery-said")  # the slices, which load when they are seen, begin with the same words
    shown.get_by_text("Images where").wait_for()
    assert page.url.endswith("#images")
    page.get_by_role("button", name="Show all").click()
    shown.get_by_text("Worst first").wait_for()


def test_evaluation_page_shows_classes_as_the_matrix_and_sorts_them_by_any_column(open_as, alice, site, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path, seed=1)
    content = results.load(evaluation)
    listed = [one["name"] for one in content["classes"]]
    by_ap = [one["name"] for one in sorted(content["classes"], key=lambda one: one["ap"])]
    assert listed not in (by_ap, by_ap[::-1], sorted(listed)), "no example: another order looks the same"
    page = open_as(alice)
    page.goto(reverse("inference:evaluation-detail", args=[evaluation.pk]))
    names = page.locator("#class-table tbody tr td:first-child")
    matrix = page.locator("#confusion tbody th").all_inner_texts()

    assert listed == [name for name in matrix if name != "background"]
    page.locator("[data-section-tabs] a[href='#classes']").click()
    assert names.all_inner_texts() == listed
    page.locator("th[data-key=name] button").click()

    assert names.all_inner_texts() == ["blue", "green", "red"]
    page.locator("th[data-key=name] button").click()
    assert names.all_inner_texts() == ["red", "green", "blue"]


def test_service_page_shows_the_best_answers_of_a_weak_model(open_as, alice, service, tmp_path):
    picture = tmp_path / "squares.png"
    picture.write_bytes(pictures.with_boxes({(16, 32, 32, 48): "green"}))
    version = service.model_version
    version.facts = {**version.facts, "score_threshold": 0.99}
    version.save()
    page = open_as(alice)
    page.goto(reverse("inference:service-detail", args=[service.pk]))
    assert page.locator("#score-value").inner_text() in ("", "0.99")

    page.set_input_files("#picture", picture)

    page.get_by_text("No prediction above the default threshold; the best predictions").wait_for()
    page.get_by_text("1 box: ").wait_for()
    page.locator("#score").fill("99")
    page.get_by_text("0 boxes").wait_for()
    assert page.get_by_text("No prediction above the default threshold; the best predictions").is_hidden()
