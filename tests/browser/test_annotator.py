"""The annotator as hands use it: draw, undo, leave and come back, with and without a server."""

from __future__ import annotations

import pytest

from annotation.models import ImageTask, Shape
from annotation.services import projects
from tests.factories import annotation as make


@pytest.fixture
def work(alice, anna):
    made = make.annotation_set(alice, images=3)
    projects.add_member(made.project, username="anna", by=alice)
    return made


class Hands:
    """What a person does on the page, in pixels of the image."""

    def __init__(self, page, work, number: int = 1) -> None:
        self.page = page
        self.work = work
        self.open(number)

    def open(self, number: int) -> None:
        task = self.work.tasks.get(number=number)
        self.page.goto(f"/annotation/projects/{self.work.project_id}/tasks/{task.pk}/")
        self.ready(task.pk)

    def ready(self, task_pk: int) -> None:
        self.page.wait_for_selector(f"#annotator[data-open='{task_pk}']:not([data-busy])")

    def at(self, x: float, y: float) -> tuple[float, float]:
        found = self.page.evaluate(
            """([x, y]) => { const s = document.querySelector("[data-stage]").getBoundingClientRect();
            const p = annotator.desk.viewport.toScreen(x, y); return [s.left + p[0], s.top + p[1]]; }""",
            [x, y],
        )
        return found[0], found[1]

    def click(self, x: float, y: float, **more) -> None:
        self.page.mouse.click(*self.at(x, y), **more)

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        mouse = self.page.mouse
        mouse.move(*self.at(x0, y0))
        mouse.down()
        mouse.move(*self.at((x0 + x1) / 2, (y0 + y1) / 2))
        mouse.move(*self.at(x1, y1))
        mouse.up()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, words: str) -> None:
        """Wait for what a script on the page says; its policy forbids `wait_for_function`."""
        for _ in range(500):
            if self.page.evaluate(words):
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"never true: {words}")

    def saved(self) -> None:
        self.until("annotator.journal.state === 'saved' && !annotator.journal.queue.length")

    def shapes(self) -> list[dict]:
        return self.page.evaluate(
            "[...annotator.desk.scene.shapes.values()].map(({kind, rings, label}) => ({kind, rings, label}))"
        )


@pytest.fixture
def hands(open_as, alice, work):
    return Hands(open_as(alice), work)


def stored() -> list[tuple[str, int]]:
    return [(shape.kind, round(shape.area)) for shape in Shape.objects.filter(deleted=False).order_by("pk")]


def test_a_box_by_drag_by_two_clicks_and_by_numbers(hands):
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


def test_a_polygon_by_mouse_and_by_keyboard(hands):
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


def test_crossing_lines_are_refused_and_can_be_untangled(hands):
    hands.press("p")
    for point in [(2, 2), (20, 20), (20, 2), (2, 20)]:
        hands.click(*point)
    hands.press("Enter")
    assert hands.shapes() == []

    hands.page.get_by_role("button", name="Untangle").click()
    hands.saved()

    assert stored() == [("polygon", 324)]


def test_undo_and_redo_reach_the_server_and_survive_a_reload(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    hands.press("Control+z")
    hands.saved()
    assert len(stored()) == 1
    hands.press("Control+Shift+z")
    hands.saved()
    assert len(stored()) == 2
    hands.until("annotator.journal.shelf.get('histories', annotator.desk.task.id).then(h => h?.done.length === 2)")

    hands.open(1)
    assert len(hands.shapes()) == 2
    hands.press("Control+z", "Control+z")
    hands.saved()

    assert stored() == []
    assert hands.shapes() == []


def test_shapes_are_chosen_moved_reshaped_reclassed_and_deleted(hands):
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


def test_corners_are_added_moved_and_removed(hands):
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


def test_copies_go_to_the_next_image(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.press("v", "Control+a", "Control+c", "d")
    hands.ready(hands.work.tasks.get(number=2).pk)
    hands.press("Control+v")
    hands.saved()

    assert list(Shape.objects.values_list("task__number", "area")) == [(1, 100), (2, 100)]


def test_objects_and_classes_are_hidden_and_cleared(hands):
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(20, 2, 30, 12)
    page = hands.page
    page.get_by_role("button", name="Hide or show all cat").click()
    assert page.evaluate("annotator.desk.scene.within({x0: 0, y0: 0, x1: 40, y1: 30}).length") == 0
    page.get_by_role("button", name="Hide or show all cat").click()
    page.get_by_role("button", name="Hide or show cat 1").click()
    assert page.evaluate("annotator.desk.scene.within({x0: 0, y0: 0, x1: 40, y1: 30}).length") == 1
    page.get_by_role("button", name="Delete all cat").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    hands.until("annotator.desk.scene.shapes.size === 0")
    hands.saved()

    assert stored() == []


def test_the_view_zooms_at_the_cursor_pans_and_fits(hands):
    page = hands.page
    before = hands.at(10, 10)
    page.mouse.move(*before)
    page.mouse.wheel(0, -500)
    assert hands.at(10, 10) == pytest.approx(before, abs=0.6)
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


def test_two_fingers_pinch_and_one_draws(open_as, alice, work):
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


def test_submit_goes_on_and_the_last_image_leads_back(hands):
    page, work = hands.page, hands.work
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.press("Control+Enter")
    hands.ready(work.tasks.get(number=2).pk)
    hands.press("Control+Enter")
    page.get_by_role("button", name="Yes, it is empty").click()
    hands.ready(work.tasks.get(number=3).pk)
    assert page.get_by_role("button", name="Next image").is_disabled()
    hands.press("Control+Enter")
    page.get_by_role("button", name="Yes, it is empty").click()
    page.wait_for_url(f"**/datasets/{work.pk}/")

    assert list(ImageTask.objects.values_list("state", "empty")) == [
        ("submitted", False), ("submitted", True), ("submitted", True),
    ]  # fmt: skip


def test_previous_next_and_the_browsers_own_back(hands):
    page, work = hands.page, hands.work
    assert page.get_by_role("button", name="Previous image").is_disabled()
    hands.press("d")
    hands.ready(work.tasks.get(number=2).pk)
    hands.press("a")
    hands.ready(work.tasks.get(number=1).pk)
    page.go_back()
    hands.ready(work.tasks.get(number=2).pk)

    assert page.url.endswith(f"/tasks/{work.tasks.get(number=2).pk}/")


def test_without_a_server_edits_wait_in_the_browser_and_go_out_later(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    page.context.set_offline(True)
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("1 edit kept here").wait_for()
    hands.drag(20, 2, 30, 12)
    page.get_by_text("2 edits kept here").wait_for()
    assert stored() == []

    page.context.set_offline(False)
    hands.saved()

    assert len(stored()) == 2


def test_edits_kept_in_the_browser_survive_the_tab(hands):
    page = hands.page
    page.watch.allow("Failed to load resource")
    page.route("**/shapes/", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("1 edit kept here").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())  # the page warns on leaving; leave all the same
    page.close()

    again = page.context.new_page()
    again.watch = page.watch
    hands.page = again
    hands.open(1)
    hands.saved()

    assert len(stored()) == len(hands.shapes()) == 1


def test_an_answer_lost_on_the_way_stores_once(hands):
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


@pytest.mark.parametrize("choice", ["Keep mine", "Take theirs"])
def test_two_people_on_one_shape_decide_themselves(hands, open_as, anna, choice):
    hands.page.watch.allow("409")
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.saved()
    other = Hands(open_as(anna), hands.work)
    other.press("v")
    other.drag(7, 7, 17, 7)
    other.saved()

    hands.press("v")
    hands.drag(7, 7, 7, 17)
    hands.page.get_by_text("Somebody else changed this cat").wait_for()
    assert Shape.objects.get().rev == 2
    hands.page.get_by_role("button", name=choice).click()
    hands.saved()

    shape = Shape.objects.get()
    mine = choice == "Keep mine"
    assert (shape.x, shape.y) == pytest.approx((2, 12) if mine else (12, 2), abs=0.3)
    assert hands.shapes()[0]["rings"] == shape.rings
    assert hands.page.locator("[data-notice]").is_hidden()


def test_the_server_has_every_edit_within_two_seconds(hands):
    hands.press("r")
    hands.page.evaluate(
        "globalThis.began = null; annotator.desk.store.addEventListener('history', () => began = performance.now())"
    )
    hands.drag(2, 2, 12, 12)
    hands.saved()

    assert hands.page.evaluate("performance.now() - began") < 2000


def test_help_lists_the_keys(hands, accessible):
    hands.press("?")
    dialog = hands.page.get_by_role("dialog")
    dialog.get_by_text("Submit and go to the next image").wait_for()
    accessible(hands.page)
    hands.press("Escape")
    assert dialog.count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_annotator_and_pages_are_accessible(open_as, alice, work, accessible, fits, shot, dark):
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


def test_the_annotator_fits_a_phone(open_as, anna, work, accessible, fits, shot):
    hands = Hands(open_as(anna, width=390, height=844), work)

    accessible(hands.page)
    fits(hands.page)
    shot(hands.page, "annotation-annotator-phone")


def test_a_session_that_ended_keeps_edits_until_the_next_sign_in(hands):
    from django.contrib.sessions.models import Session

    page = hands.page
    page.watch.allow("status of 401")
    Session.objects.all().delete()
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    page.get_by_text("Signed out, 1 edit kept here").wait_for()
    assert stored() == []

    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Sign in").click()
    door = opened.value
    door.get_by_label("Username").fill("alice")
    door.get_by_label("Password").fill("correct horse")
    door.get_by_role("button", name="Sign in").click()
    door.wait_for_url("**/")
    door.close()
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    hands.saved()

    assert len(stored()) == 1


def test_sixty_edits_over_a_line_that_loses_every_third_message(hands):
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


def test_the_page_and_the_server_judge_shapes_alike(hands):
    import random

    from annotation import geometry

    rng = random.Random(7)
    rings = [[float(rng.randint(0, 20)) for _ in range(2 * rng.randint(3, 9))] for _ in range(400)]

    theirs = hands.page.evaluate(
        """async (rings) => { const g = await import("/static/annotation/geometry.js");
        return rings.map((ring) => [g.flawOf([ring]) === null, g.area([ring]), Boolean(g.firstCrossing(ring)),
          (g.firstCrossing(ring) && g.untangled(ring)) || ring]); }""",
        rings,
    )

    for ring, (good, area, crosses, untangled) in zip(rings, theirs, strict=True):
        assert good == (geometry.flaw_of([ring], width=20, height=20) is None), ring
        assert area == geometry.area([ring])
        assert crosses == (geometry.first_crossing(ring) is not None)
        assert geometry.first_crossing(untangled) is None
        assert sorted(zip(untangled[::2], untangled[1::2], strict=False)) == sorted(
            zip(ring[::2], ring[1::2], strict=False)
        )
