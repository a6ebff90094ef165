"""How the annotator's page looks and what it remembers: zoom, names, sliders, panels, the share of the picture."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from annotation.services import sets
from tests.browser.hands import Hands
from tests.factories import annotation as make

pytestmark = pytest.mark.long


def scale(hands: Hands) -> float:
    return hands.page.evaluate("annotator.desk.viewport.scale")


def kept(hands: Hands, name: str):
    return hands.page.evaluate("(name) => annotator.settings.get(name)", name)


def test_annotator_keeps_the_zoom_at_the_next_image_by_choice_and_remembers_it(hands):
    hands.press("+", "+", "+", "d")
    hands.ready(hands.work.tasks.get(number=2).pk)
    assert hands.page.evaluate("annotator.desk.viewport.fitted")

    hands.press("k", "+", "+", "+")
    chosen, place = scale(hands), hands.at(10, 10)
    hands.press("d")
    hands.ready(hands.work.tasks.get(number=3).pk)
    assert (scale(hands), hands.at(10, 10)) == (chosen, pytest.approx(place, abs=1))

    hands.open(1)
    assert kept(hands, "keepZoom") is True


def test_annotator_class_brings_its_tool_and_a_tool_its_class(hands):
    sets.add_label(hands.work, name="nerve", shape="polygon")
    hands.open(1)
    tool = "annotator.desk.toolName"
    label = "annotator.desk.labelOf(annotator.desk.label).name"
    page = hands.page
    assert page.evaluate(tool) == "select"

    page.get_by_role("button", name="nerve").first.click()
    assert page.evaluate(tool) == "polygon"
    hands.press("v", "2")
    assert page.evaluate(tool) == "box"
    hands.press("p")
    assert page.evaluate(f"[{tool}, {label}]") == ["polygon", "nerve"]
    hands.press("r")
    assert page.evaluate(f"[{tool}, {label}]") == ["box", "box"]

    hands.drag(2, 2, 12, 12)
    hands.press("v")
    hands.click(7, 7)
    hands.press("3")
    expect(page.locator("[data-hint]")).to_have_text("Objects of the class nerve require the shape Polygon.")
    hands.saved()
    assert [(shape["kind"], shape["label"]) for shape in hands.shapes()] == [
        ("bbox", hands.work.labels.get(name="box").pk)
    ]


def test_annotator_writes_classes_on_shapes_and_leaves_out_what_finds_no_room(hands, alice):
    task = hands.work.tasks.select_related("asset").get(number=1)
    rings = [[[x, y, x + 0.6, y, x + 0.6, y + 0.6]] for y in range(29) for x in range(39)]
    events = [make.put(task, rings=ring) for ring in rings]
    for first in range(0, len(events), 400):
        make.apply(task, *events[first : first + 400], by=alice)
    hands.open(1)
    written = "annotator.desk.renderer.names.written.size"
    hands.until("annotator.desk.renderer.settled")
    assert hands.page.evaluate(written) == 0

    hands.press("l")
    hands.until(f"annotator.desk.renderer.settled && {written} > 50")
    assert hands.page.evaluate(written) <= 400
    hands.open(1)
    hands.until(f"{written} > 50")  # remembered
    hands.press("l")
    hands.until(f"annotator.desk.renderer.settled && {written} === 0")


def test_annotator_looks_are_changed_by_keys_and_sliders_and_remembered(hands, accessible, fits, shot):
    page = hands.page
    hands.press("r")
    hands.drag(2, 2, 22, 22)
    hands.press("]", "}", "Alt+ArrowUp", "Alt+Shift+ArrowUp", "l", "s")
    assert {name: kept(hands, name) for name in ("fill", "line", "brightness", "contrast")} == {
        "fill": 24, "line": 2, "brightness": 110, "contrast": 110,
    }  # fmt: skip
    panel = page.get_by_label("Display settings", exact=True).and_(page.locator("section"))
    panel.get_by_label("Brightness").press("ArrowRight")
    assert page.evaluate("annotator.desk.renderer.image.canvas.style.filter") == "brightness(120%) contrast(110%)"
    accessible(page)
    fits(page)
    shot(page, "annotator-looks")
    hands.press("Escape")
    expect(panel).to_be_hidden()

    hands.open(1)
    assert page.evaluate("[annotator.desk.renderer.fill, annotator.desk.renderer.line]") == [0.24, 2]
    hands.press("Alt+0")
    assert kept(hands, "brightness") == 100
    assert page.evaluate("annotator.desk.renderer.image.canvas.style.filter") == ""


def test_annotator_gives_the_picture_more_than_sixty_percent_of_the_window(hands, accessible, shot):
    page = hands.page
    share = """(() => { const s = document.querySelector("[data-stage]").getBoundingClientRect();
        return s.width * s.height / (innerWidth * innerHeight); })()"""
    assert page.evaluate(share) > 0.65
    shot(page, "annotator-plain")
    hands.press("t")
    expect(page.get_by_role("button", name="Image 3", exact=True)).to_be_visible()
    assert page.evaluate(share) > 0.6
    shot(page, "annotator-strip")
    accessible(page)
    hands.press("i")
    hands.until(f"{share} > 0.75")

    hands.open(1)  # panels stay as they were left
    hands.until(f"{share} > 0.75")
    hands.press("i", "t", "Shift+F")
    hands.until(f"document.querySelector('[data-stage]').getBoundingClientRect().top < 60 && {share} > 0.7")
    hands.press("Shift+F")
    expect(page.get_by_role("navigation", name="Breadcrumb")).to_be_visible()


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_annotator_key_help_needs_no_scrolling(open_as, alice, work, language, shot):
    hands = Hands(open_as(alice, language=language), work)
    hands.press("?")
    body = hands.page.locator(".annotator-help-body")
    body.wait_for()
    shot(hands.page, f"annotator-keys-{language}")

    assert body.evaluate("(e) => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]") == [0, 0]


def test_annotator_goes_to_an_image_by_number_and_by_the_strip(hands):
    page, work = hands.page, hands.work
    hands.press("g")
    page.get_by_label("Image number").fill("3")
    hands.press("Enter")
    hands.ready(work.tasks.get(number=3).pk)
    hands.press("t")
    page.get_by_role("button", name="Image 2", exact=True).click()
    hands.ready(work.tasks.get(number=2).pk)

    assert page.url.endswith(f"/tasks/{work.tasks.get(number=2).pk}/")
    expect(page.get_by_role("button", name="Image 2", exact=True)).to_have_attribute("aria-current", "true")


def test_annotator_list_of_objects_is_narrowed_down_sorted_and_locked(hands):
    page = hands.page
    hands.press("r")
    hands.drag(2, 2, 12, 12)
    hands.drag(15, 2, 35, 22)
    hands.press("2")
    hands.drag(2, 15, 5, 18)
    rows = page.locator("[data-objects] .annotator-choose .cut")
    expect(rows).to_have_text(["box 3", "cat 2", "cat 1"])
    page.get_by_label("Sort order of objects").select_option("smallest")
    expect(rows).to_have_text(["box 3", "cat 1", "cat 2"])
    hands.open(1)
    expect(rows).to_have_text(["box 3", "cat 1", "cat 2"])
    hands.press("Shift+J", "j")
    page.keyboard.type("cat")
    expect(rows).to_have_text(["cat 2", "cat 1"])
    expect(page.locator("[data-object-count]")).to_have_text("2 / 3")
    hands.press("Enter")
    assert page.evaluate("annotator.desk.nameOf(annotator.desk.scene.selection[0])") == "cat 2"

    page.get_by_role("button", name="Lock or unlock cat 2").click()
    hands.press("Delete")
    expect(page.locator("[data-hint]")).to_contain_text("This object is locked")
    hands.press("Escape")
    hands.click(25, 10)
    assert page.evaluate("annotator.desk.scene.selected.size") == 0  # the pointer goes through it
    hands.press("Alt+L")
    hands.page.wait_for_timeout(400)  # pause: another click, not a double one
    hands.click(25, 10)
    hands.press("Delete")
    assert len(hands.shapes()) == 2
