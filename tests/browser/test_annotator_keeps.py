"""The annotator keeps what was drawn: leave, come back, with and without a server, two people at once."""

from __future__ import annotations

import pytest

from annotation.models import ImageTask, Shape
from tests.browser.hands import Hands, stored
from tests.factories import annotation as make


def test_annotator_submit_goes_on_and_the_last_image_leads_back(hands):
    page, work = hands.page, hands.work
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.press("Control+Enter")
    hands.ready(work.tasks.get(number=2).pk)
    hands.press("Control+Enter")
    page.get_by_role("button", name="Yes, it is empty").click()
    hands.ready(work.tasks.get(number=3).pk)
    assert page.get_by_role("button", name="Next image", exact=True).is_disabled()
    hands.press("Control+Enter")
    page.get_by_role("button", name="Yes, it is empty").click()
    page.wait_for_url(f"**/datasets/{work.pk}/")

    assert list(ImageTask.objects.values_list("state", "empty")) == [
        ("submitted", False), ("submitted", True), ("submitted", True),
    ]  # fmt: skip


def test_annotator_moves_by_previous_next_and_the_browsers_back(hands):
    page, work = hands.page, hands.work
    assert page.get_by_role("button", name="Previous image", exact=True).is_disabled()
    hands.press("d")
    hands.ready(work.tasks.get(number=2).pk)
    hands.press("a")
    hands.ready(work.tasks.get(number=1).pk)
    page.go_back()
    hands.ready(work.tasks.get(number=2).pk)

    assert page.url.endswith(f"/tasks/{work.tasks.get(number=2).pk}/")


def test_annotator_keeps_edits_without_a_server_and_sends_them_later(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    page.context.set_offline(True)
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("1 edit stored locally").wait_for()
    hands.drag(20, 2, 30, 12)
    page.get_by_text("2 edits stored locally").wait_for()
    assert stored() == []

    page.context.set_offline(False)
    hands.saved()

    assert len(stored()) == 2


def test_annotator_edits_kept_in_the_browser_survive_the_tab(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    page.route("**/shapes/", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("1 edit stored locally").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())  # the page warns on leaving; leave all the same
    page.close()

    again = page.context.new_page()
    again.watch = page.watch
    hands.page = again
    hands.open(1)
    hands.saved()

    assert len(stored()) == len(hands.shapes()) == 1


def test_annotator_stores_once_when_an_answer_is_lost(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    lost = []

    def swallow(route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch().status)  # the server did its work, nobody hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/shapes/", swallow)
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.until("annotator.journal.failures > 0")
    hands.saved()

    assert lost == [200]
    assert len(stored()) == 1
    assert Shape.objects.get().rev == 1


@pytest.mark.parametrize("choice", ["Keep mine", "Use theirs"])
def test_annotator_lets_two_people_on_one_shape_decide(hands, open_as, anna, choice):
    page = hands.page
    page.watch.allow("409")
    page.watch.allow("Failed to load resource")
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.saved()
    other = Hands(open_as(anna), hands.work)
    page.context.set_offline(True)  # else the page may learn of the other edit before its own
    hands.press("v")
    hands.drag(7, 7, 7, 17)
    page.get_by_text("1 edit stored locally").wait_for()
    other.press("v")
    other.drag(7, 7, 17, 7)
    other.saved()

    page.context.set_offline(False)
    page.get_by_text("This cat was changed by another user").wait_for()
    assert Shape.objects.get().rev == 2
    page.get_by_role("button", name=choice).click()
    hands.saved()

    shape = Shape.objects.get()
    mine = choice == "Keep mine"
    assert (shape.x, shape.y) == pytest.approx((2, 12) if mine else (12, 2), abs=0.3)
    assert hands.shapes()[0]["rings"] == shape.rings
    assert page.locator("[data-notice]").is_hidden()


def test_annotator_sends_every_edit_within_two_seconds(hands):
    hands.press("r")
    hands.page.evaluate(
        "globalThis.began = null; annotator.desk.store.addEventListener('history', () => began = performance.now())"
    )
    hands.drag(2, 2, 12, 12)
    hands.saved()

    assert hands.page.evaluate("performance.now() - began") < 2000


def test_annotator_help_lists_the_keys(hands, accessible):
    hands.press("?")
    dialog = hands.page.get_by_role("dialog")
    dialog.get_by_text("Submit and go to the next image").wait_for()
    accessible(hands.page)
    hands.press("Escape")
    assert dialog.count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_annotator_and_annotation_pages_are_accessible(open_as, alice, work, accessible, fits, shot, dark):
    task = work.tasks.select_related("asset").get(number=1)
    make.draw(task, alice, 3)
    project = f"/annotation/projects/{work.project_id}/"
    page = open_as(alice, dark=dark)
    for name, url in {
        "projects": "/annotation/",
        "project-new": "/annotation/projects/new/",
        "project": project,
        "set-new": f"{project}datasets/new/",
        "grid": f"{project}datasets/{work.pk}/",
        "classes": f"{project}datasets/{work.pk}/classes/",
    }.items():
        page.goto(url)
        accessible(page)
        fits(page)
        shot(page, f"annotation-{name}{'-dark' if dark else ''}")
    hands = Hands(page, work)
    hands.page.get_by_role("button", name="cat 1").first.click()
    accessible(page)
    fits(page)
    shot(page, f"annotation-annotator{'-dark' if dark else ''}")


def test_annotator_fits_a_phone(open_as, anna, work, accessible, fits, shot):
    hands = Hands(open_as(anna, width=390, height=844), work)

    accessible(hands.page)
    fits(hands.page)
    shot(hands.page, "annotation-annotator-phone")


def test_annotator_keeps_edits_of_an_ended_session_until_sign_in(hands):
    from django.contrib.sessions.models import Session

    page = hands.page
    page.watch.allow("status of 401")
    page.watch.allow("status of 403")  # a retry that crosses the sign-in carries the token from before it
    Session.objects.all().delete()
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("Signed out, 1 edit stored locally").wait_for()
    assert stored() == []

    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in").click()
    sign_in_tab = opened.value
    sign_in_tab.get_by_label("Username").fill("alice")
    sign_in_tab.get_by_label("Password").fill("correct horse")
    sign_in_tab.get_by_role("button", name="Sign in").click()
    sign_in_tab.wait_for_url("**/")
    sign_in_tab.close()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    hands.saved()

    assert len(stored()) == 1


def test_annotator_saves_sixty_edits_over_a_lossy_line(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    page.evaluate("annotator.journal.constructor.retryMs.fill(30)")
    turn = iter(range(10_000))

    def unreliable(route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        now = next(turn) % 3
        if now == 0:
            route.abort()  # the question is lost
        elif now == 1:
            route.fetch()
            route.abort()  # the answer is lost
        else:
            route.continue_()

    page.route("**/shapes/", unreliable)
    hands.press("r")
    for n in range(20):
        hands.drag(1 + n, 2, 8 + n, 12)
        if n % 4 == 3:
            hands.press("Control+z")
        if n % 5 == 4:
            page.wait_for_timeout(350)
    hands.press("v", "Control+a", "Shift+ArrowDown", "ArrowDown", "ArrowUp")
    hands.press("Control+z", "Control+z", "Control+Shift+z")
    hands.saved()

    here = {tuple(shape["rings"][0]) for shape in hands.shapes()}
    there = {tuple(shape.rings[0]) for shape in Shape.objects.filter(deleted=False)}
    assert len(here) == 15
    assert here == there


def points_of(ring: list[float]) -> list[tuple[float, float]]:
    return sorted(zip(ring[::2], ring[1::2], strict=True))


def test_annotator_and_server_judge_shapes_alike(hands):
    import random

    from datasets.shapes import geometry
    from datasets.shapes.polygon import POLYGON

    rng = random.Random(7)
    rings = [[float(rng.randint(0, 20)) for _ in range(2 * rng.randint(3, 9))] for _ in range(400)]

    theirs = hands.page.evaluate(
        """async (rings) => { const g = await import("/static/annotation/geometry.js");
        return rings.map((ring) => [g.flawOf([ring]) === null, g.area([ring]), Boolean(g.firstCrossing(ring)),
          (g.firstCrossing(ring) && g.untangled(ring)) || ring]); }""",
        rings,
    )

    for ring, (good, area, crosses, untangled) in zip(rings, theirs, strict=True):
        assert good == (POLYGON.flaw([ring], width=20, height=20) is None), ring
        assert area == geometry.area([ring])
        assert crosses == (geometry.first_crossing(ring) is not None)
        assert geometry.first_crossing(untangled) is None
        assert sorted(zip(untangled[::2], untangled[1::2], strict=False)) == sorted(
            zip(ring[::2], ring[1::2], strict=False)
        )
