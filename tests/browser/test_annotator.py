"""The annotator as hands use it: draw, reshape, copy, hide, undo, look closer."""

from __future__ import annotations

import pytest

from annotation.models import Shape
from tests.browser.hands import Hands, stored


def test_annotator_draws_a_box_by_drag_by_two_clicks_and_by_numbers(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.click(20, 5)
    hands.click(30, 15)
    hands.press("b")
    dialog = hands.page.get_by_role("dialog")
    dialog.get_by_label("Shape").select_option("bbox")
    for field, value in {"Left": "5", "Top": "18", "Width": "10", "Height": "4"}.items():
        dialog.get_by_label(field).fill(value)
    dialog.get_by_role("button", name="Add").click()
    hands.saved()

    assert [kind for kind, _ in stored()] == ["bbox"] * 3
    assert [area for _, area in stored()] == [100, 100, 40]


def test_annotator_draws_a_polygon_by_mouse_and_by_keyboard(hands):
    hands.press("p")
    for point in [(2, 2), (20, 2), (20, 20), (30, 29)]:
        hands.click(*point)
    hands.press("Backspace", "Enter")
    hands.click(22, 5)
    hands.click(35, 5)
    hands.click(35, 15)
    hands.click(22, 5)  # the first point closes it
    hands.saved()

    assert stored() == [("polygon", 162), ("polygon", 65)]


def test_annotator_refuses_crossing_lines_and_lets_them_be_untangled(hands):
    hands.press("p")
    for point in [(2, 2), (20, 20), (20, 2), (2, 20)]:
        hands.click(*point)
    hands.press("Enter")
    assert hands.shapes() == []

    hands.page.get_by_role("button", name="Untangle").click()
    hands.saved()

    assert stored() == [("polygon", 324)]


def test_annotator_undo_and_redo_reach_the_server_and_survive_a_reload(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    hands.press("Control+z")
    hands.saved()
    assert len(stored()) == 1
    hands.press("Control+Shift+z")
    hands.saved()
    assert len(stored()) == 2
    hands.undo_kept()

    hands.open(1)
    assert len(hands.shapes()) == 2
    hands.press("Control+z", "Control+z")
    hands.saved()

    assert stored() == []
    assert hands.shapes() == []


def test_annotator_chooses_moves_reshapes_reclasses_and_deletes_shapes(hands):
    box = hands.work.labels.get(name="box")
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.press("v")
    hands.drag(7, 7, 17, 12)
    assert hands.shapes()[0]["rings"][0][:2] == pytest.approx([12, 7], abs=0.3)
    hands.drag(22, 17, 32, 27)
    ring = hands.shapes()[0]["rings"][0]
    assert (ring[4], ring[5]) == pytest.approx((32, 27), abs=0.3)
    hands.press("2")
    hands.press("ArrowLeft", "Shift+ArrowUp")
    hands.saved()
    shape = Shape.objects.get()
    assert shape.label == box
    assert (shape.x, shape.y) == pytest.approx((11, 0), abs=0.3)

    hands.press("Control+d", "Delete")
    assert len(hands.shapes()) == 1
    hands.click(20, 10)
    hands.press("Delete")
    hands.saved()
    assert stored() == []


def test_annotator_adds_moves_and_removes_corners(hands):
    hands.press("p")
    for point in [(5, 5), (30, 5), (30, 25), (5, 25)]:
        hands.click(*point)
    hands.press("Enter", "v")
    hands.click(15, 15)
    hands.drag(17, 5, 17, 1)
    assert len(hands.shapes()[0]["rings"][0]) == 10
    hands.page.keyboard.down("Alt")
    hands.click(30, 25)
    hands.page.keyboard.up("Alt")
    hands.saved()

    assert len(Shape.objects.get().rings[0]) == 8


def test_annotator_copies_shapes_to_the_next_image(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.press("v", "Control+a", "Control+c", "d")
    hands.ready(hands.work.tasks.get(number=2).pk)
    hands.press("Control+v")
    hands.saved()

    assert list(Shape.objects.values_list("task__number", "area")) == [(1, 100), (2, 100)]


def test_annotator_hides_and_clears_objects_and_classes(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    page = hands.page
    page.get_by_role("button", name="Hide or show all cat").click()
    assert page.evaluate("annotator.desk.scene.within({x0: 0, y0: 0, x1: 40, y1: 30}).length") == 0
    page.get_by_role("button", name="Hide or show all cat").click()
    page.get_by_role("button", name="Hide or show cat 1").click()
    assert page.evaluate("annotator.desk.scene.within({x0: 0, y0: 0, x1: 40, y1: 30}).length") == 1
    page.get_by_role("button", name="More for all cat").click()
    page.get_by_role("menuitem", name="Delete all cat").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    hands.until("annotator.desk.scene.shapes.size === 0")
    hands.saved()

    assert stored() == []


def test_annotator_view_zooms_at_the_cursor_pans_and_fits(hands):
    page = hands.page
    before = hands.at(10, 10)
    page.mouse.move(*before)
    page.mouse.wheel(0, -500)
    assert hands.at(10, 10) == pytest.approx(before, abs=1.3)  # a wheel turns at a whole pixel
    before = hands.at(10, 10)
    page.mouse.move(*before)
    page.keyboard.down("Space")
    page.mouse.down()
    page.mouse.move(before[0] + 40, before[1] + 30)
    page.mouse.up()
    page.keyboard.up("Space")
    assert hands.at(10, 10) == pytest.approx((before[0] + 40, before[1] + 30), abs=0.6)
    assert hands.shapes() == []
    hands.press("Shift+Digit2")
    assert page.evaluate("annotator.desk.viewport.scale") == 1
    hands.press("Shift+Digit1")
    assert page.evaluate("annotator.desk.viewport.fitted")


def test_annotator_pinches_with_two_fingers_and_draws_with_one(open_as, alice, work):
    hands = Hands(open_as(alice, has_touch=True), work)
    hands.press("r")
    session = hands.page.context.new_cdp_session(hands.page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        fingers = [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(hands.at(*point) for point in points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})

    touch("touchStart", (5, 5))
    touch("touchMove", (15, 10))
    touch("touchMove", (25, 15))
    touch("touchEnd")
    assert len(hands.shapes()) == 1
    scale = hands.page.evaluate("annotator.desk.viewport.scale")
    touch("touchStart", (15, 15))
    touch("touchStart", (15, 15), (20, 15))
    touch("touchMove", (12, 15), (24, 15))
    touch("touchMove", (10, 15), (28, 15))
    touch("touchEnd")

    assert hands.page.evaluate("annotator.desk.viewport.scale") > 1.5 * scale
    assert len(hands.shapes()) == 1
