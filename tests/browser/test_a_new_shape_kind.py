"""A kind of shape that is registered has its button, its key and its module in the annotator."""

from __future__ import annotations

import pytest

from annotation.models import Shape
from datasets import shapes
from tests.browser.hands import Hands, stored
from tests.factories.shapes import SCRIPT, Point


@pytest.fixture
def point():
    with shapes.KINDS.temporarily(Point()):
        yield


@pytest.fixture
def hands(point, open_as, alice, work):
    """Alice at the annotator of a platform that knows points."""
    page = open_as(alice)
    page.route(
        "**/annotation/shapes/point.js",
        lambda route: route.fulfill(body=SCRIPT.read_text(), content_type="text/javascript"),
    )
    return Hands(page, work)


def places() -> list[list[float]]:
    return [[round(value) for value in shape.rings[0]] for shape in Shape.objects.filter(deleted=False).order_by("pk")]


def test_registered_kind_is_drawn_by_key_by_button_and_by_numbers(hands):
    hands.press("o")
    hands.click(10, 12)
    hands.press("v")
    hands.page.get_by_role("toolbar").get_by_role("button", name="Point").click()
    hands.click(30, 5)
    hands.press("b")
    dialog = hands.page.get_by_role("dialog")
    dialog.get_by_label("Shape").select_option(label="Point")
    dialog.get_by_role("textbox", name="Corners, one per line: x, y").fill("20, 20")
    dialog.get_by_role("button", name="Add").click()
    hands.saved()

    assert stored() == [("point", 0)] * 3
    assert places() == [[10, 12], [30, 5], [20, 20]]


def test_registered_kind_is_chosen_moved_copied_and_deleted(hands):
    label = hands.work.labels.get(name="box")
    type(label).objects.filter(pk=label.pk).update(shape="any")
    hands.open(1)
    hands.press("o")
    hands.click(10, 12)
    hands.press("v")
    hands.click(10, 12)
    hands.drag(10, 12, 14, 18)
    hands.press("ArrowUp", "2", "Control+d")
    hands.saved()

    assert places() == [[14, 17], [24, 27]]
    assert set(Shape.objects.values_list("label", flat=True)) == {label.pk}

    hands.press("Delete")
    hands.saved()
    type(label).objects.filter(pk=label.pk).update(shape="point")
    hands.open(1)
    assert (len(hands.shapes()), places()) == (1, [[14, 17]])

    hands.press("r", "2")
    assert hands.page.evaluate("annotator.desk.toolName") == "point"
    hands.press("?")
    assert "Point: click it" in hands.page.get_by_role("dialog").inner_text()
