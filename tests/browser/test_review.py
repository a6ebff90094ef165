"""An image goes back with a comment, comes again and is accepted; a viewer sees it without any tool."""

from __future__ import annotations

import pytest

from annotation.services import projects
from annotation.services import work as images
from tests.browser.hands import Hands
from tests.factories import annotation as make


@pytest.fixture
def submitted(work, alice):
    task = work.tasks.select_related("asset").get(number=1)
    make.draw(task, alice)
    return images.submit(task=task, by=alice)


def test_review_sends_an_image_back_to_be_redrawn_and_accepts_it(
    open_as, work, alice, anna, bob, submitted, accessible, shot
):
    projects.add_member(work.project, username="anna", role="reviewer", by=alice)
    projects.add_member(work.project, username="bob", role="annotator", by=alice)

    reviewer = Hands(open_as(anna), work).page
    reviewer.get_by_role("button", name="Send back").click()
    dialog = reviewer.get_by_role("dialog")
    dialog.get_by_label("Changes requested").fill("The second cell is missing")
    dialog.get_by_role("button", name="Send back").click()
    reviewer.wait_for_selector("#annotator[data-open]:not([data-busy]) [data-place]:text('2 / 3')")

    bobs = Hands(open_as(bob), work)
    accessible(bobs.page)
    shot(bobs.page, "review-sent-back")
    assert "The second cell is missing" in bobs.page.locator("[data-review]").inner_text()
    bobs.press("r")
    bobs.drag(20, 5, 30, 15)
    bobs.press("Control+Enter")
    bobs.page.wait_for_selector("[data-place]:text('2 / 3')")
    bobs.saved()

    anna_hands = Hands(open_as(anna), work)
    accessible(anna_hands.page)
    shot(anna_hands.page, "review-again")
    assert "Changes requested earlier" in anna_hands.page.locator("[data-review]").inner_text()
    anna_hands.press("Alt+Enter")
    anna_hands.page.wait_for_selector("[data-place]:text('2 / 3')")
    submitted.refresh_from_db()
    assert (submitted.state, submitted.shape_count) == ("accepted", 2)


@pytest.mark.parametrize("dark", [False, True])
def test_annotator_lets_a_viewer_look_and_change_nothing(
    open_as, work, alice, bob, submitted, accessible, fits, shot, dark
):
    projects.add_member(work.project, username="bob", role="viewer", by=alice)

    looking = Hands(open_as(bob, dark=dark, width=390 if dark else 1440), work)
    before = looking.shapes()
    looking.press("r")
    looking.drag(2, 2, 12, 12)
    looking.press("v")
    looking.click(8, 4)
    looking.press("Delete", "Control+z", "Control+Enter")
    accessible(looking.page)
    shot(looking.page, f"viewer-{'dark' if dark else 'light'}")

    assert looking.shapes() == before
    assert looking.page.locator("[data-saved]").inner_text().strip() == "View only"
    assert looking.page.get_by_role("button", name="Box", exact=True).count() == 0
    assert looking.page.evaluate("annotator.journal.queue.length") == 0
