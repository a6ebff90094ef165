"""Objects that come from elsewhere: the image before, a second window, a second person."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from annotation.models import Shape
from annotation.services import review, work
from tests.browser.hands import Hands, stored
from tests.factories import annotation as make
from tests.running import wait_for

pytestmark = pytest.mark.long


def boxes(*, number: int) -> list[list[int]]:
    rows = Shape.objects.filter(task__number=number, deleted=False).order_by("pk")
    return [[round(row.x), round(row.y)] for row in rows]


def corners(hands: Hands) -> list[list[int]]:
    return sorted([round(value) for value in shape["rings"][0][:2]] for shape in hands.shapes())


def test_annotator_copies_the_previous_image_by_one_key_and_only_once(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    hands.saved()
    hands.press("d")
    hands.ready(hands.work.tasks.get(number=2).pk)
    hands.press("w")
    hands.until("annotator.desk.scene.shapes.size === 2")
    hands.press("w")
    expect(hands.page.locator("[data-hint]")).to_have_text("These objects already exist here.")
    hands.saved()
    assert boxes(number=2) == boxes(number=1)

    hands.press("Control+z")  # all of it was one step
    hands.saved()
    assert boxes(number=2) == []


def test_annotator_takes_chosen_objects_along_to_the_next_image(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    hands.press("v")
    hands.click(25, 7)
    hands.press("Control+b")
    hands.ready(hands.work.tasks.get(number=2).pk)
    hands.until("annotator.desk.scene.shapes.size === 1")
    hands.saved()

    assert boxes(number=2) == [[20, 2]]


def test_annotator_shows_another_persons_edits_within_two_seconds(hands, open_as, anna):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.saved()
    other = Hands(open_as(anna), hands.work)
    other.press("r")
    other.drag(20, 2, 30, 12)
    other.press("v")
    other.drag(7, 7, 7, 17)
    other.saved()

    wait_for(lambda: corners(hands) == [[2, 12], [20, 2]], 2, lambda: f"they see {corners(hands)}")
    hands.press("Control+z")
    expect(hands.page.locator("[data-hint]")).to_contain_text("those changes are kept")
    hands.page.wait_for_timeout(400)  # pause: nothing may be taken back meanwhile
    assert len(stored()) == len(hands.shapes()) == 2


def test_annotator_shows_edits_of_a_second_window_and_keeps_its_own(hands):
    page = hands.page
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.saved()
    second = page.context.new_page()
    second.watch = page.watch
    there = Hands(second, hands.work)
    there.press("r")
    there.drag(20, 2, 30, 12)
    there.saved()
    page.route("**/shapes/", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    page.watch.allow("Failed to load resource")
    page.bring_to_front()
    hands.until("annotator.desk.scene.shapes.size === 2")
    hands.press("v")
    hands.drag(7, 7, 7, 17)  # not sent yet
    second.bring_to_front()
    there.press("v")
    there.drag(25, 7, 25, 17)
    there.saved()
    page.bring_to_front()
    hands.until("[...annotator.desk.scene.shapes.values()].some(({rings}) => rings[0][0] > 19 && rings[0][1] > 11)")

    assert corners(hands) == [[2, 12], [20, 12]]
    page.unroute("**/shapes/")
    hands.saved()
    assert boxes(number=1) == [[2, 12], [20, 12]]
    hands.press("Control+z")
    hands.saved()
    assert boxes(number=1) == [[2, 2], [20, 12]]


def test_annotator_hears_of_a_verdict_on_the_open_image(hands, alice, anna):
    task = hands.work.tasks.select_related("asset").get(number=1)
    make.draw(task, anna)
    work.submit(task=task, by=anna)
    expect(hands.page.locator("[data-task-state]")).to_have_text("Submitted")

    review.judge(task=task, by=alice, verdict="rejected", comment="One is missing")

    expect(hands.page.locator("[data-task-state]")).to_have_text("Sent back")
    expect(hands.page.locator("[data-review]")).to_contain_text("One is missing")
    assert len(hands.shapes()) == 1
