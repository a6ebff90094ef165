"""The pipeline editor in a real browser, on a page of its own: by mouse, by keyboard, as a list, and when it is hit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import pipeline_page
from tests.browser.hands import until
from tests.browser.pipeline_page import ADDRESS, SPEC, Drafts

#: Links that do not end at the middle of their ports, with a name of a step that is too long for it.
OFF_THEIR_PORTS = """async () => {
  const { rename } = await import("/static/pipelines/edits.js"), { stage, graph } = editor;
  rename(graph, "train", "a".repeat(40)); stage.flush();
  const middle = (dot) => { const { x, y, width, height } = dot.getBoundingClientRect();
    return { clientX: x + width / 2, clientY: y + height / 2 }; };
  return [...document.querySelectorAll(".pl-step:not([hidden]) .pl-dot")].filter((dot) => {
    const [x, y] = stage.camera.toWorld(middle(dot)), { side, port } = dot.dataset;
    const [ex, ey] = stage.sizes.end(dot.closest(".pl-step").dataset.id, side, port);
    return Math.hypot(x - ex, y - ey) > 2;
  }).map((dot) => dot.closest(".pl-step").dataset.id + " " + dot.dataset.port); }"""
STEP = ".pl-step[data-id={}]"
SPEC_NOW = "async () => { const {{ write }} = await import('/static/pipelines/spec.js'); return write(editor.graph); }"


@pytest.fixture
def drawn(chromium) -> Iterator[Callable]:
    """`drawn(drafts=…, width=…)` → a page with the editor; what it logs as an error fails the test."""
    contexts, seen = [], []

    def open_page(drafts: Drafts | None = None, *, width: int = 1440, dark: bool = False, context=None, **more):
        context = context or chromium.new_context(
            viewport={"width": width, "height": 900}, reduced_motion="reduce", color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: seen.append(str(error)))
        pipeline_page.serve(page, drafts or Drafts(), dark=dark, **more)
        page.goto(ADDRESS)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert seen == []


def spec(page) -> dict:
    return page.evaluate(SPEC_NOW.replace("{{", "{").replace("}}", "}"))


def pull(page, start, end) -> None:
    """Press at the middle of one thing and let go at the middle of another."""
    a, b = start.bounding_box(), end.bounding_box()
    page.mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2, steps=4)
    page.mouse.up()


def dot(page, step: str, side: str, port: str):
    return page.locator(f"{STEP.format(step)} .pl-dot[data-side={side}][data-port='{port}']")


@pytest.mark.parametrize(("count", "is_whole"), [(20, True), (120, False)], ids=["template", "long"])
def test_a_pipeline_as_long_as_a_template_opens_whole(drawn, shot, count, is_whole):
    page = drawn(Drafts(spec=pipeline_page.long_spec(count)))
    until(page, "editor.stage.cards.size && editor.stage.camera.width")
    seen, box = page.evaluate("[editor.stage.camera.seen(), editor.stage.sizes.box(editor.graph.steps.keys())]")
    shot(page, f"pipeline-opened-{count}")

    inside = seen["left"] <= box["left"] and box["right"] <= seen["right"] and box["bottom"] <= seen["bottom"]
    assert inside == is_whole


def test_steps_are_dragged_linked_refused_and_offered_by_mouse(drawn):
    page = drawn(Drafts(spec={"format": 1, "steps": {}}))
    canvas = page.locator(".pl-canvas")
    pull(page, page.locator(".pl-kind[data-kind=dataset]"), canvas)
    expect(page.locator(STEP.format("dataset"))).to_be_focused()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] - 240, box["y"] + 60, steps=3)  # the canvas moves, the step with it
    page.mouse.up()
    page.locator(".pl-palette input").fill("eval")
    page.keyboard.press("Enter")
    expect(page.locator(STEP.format("evaluate"))).to_be_focused()
    pull(page, dot(page, "dataset", "out", "data"), dot(page, "evaluate", "in", "model"))
    expect(page.locator(".pl-hint.is-wrong")).to_contain_text("requires Model. “data” provides Dataset.")
    pull(page, dot(page, "evaluate", "in", "data"), page.locator(STEP.format("dataset")))  # backwards, onto a step

    assert spec(page)["steps"]["evaluate"]["from"] == {"data": "dataset.data"}
    a = dot(page, "dataset", "out", "data").bounding_box()
    page.mouse.move(a["x"] + 6, a["y"] + 6)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 700, steps=4)
    page.mouse.up()
    page.locator("dialog input").fill("train")
    page.keyboard.press("Enter")
    expect(page.locator(STEP.format("train"))).to_be_focused()
    assert spec(page)["steps"]["train"]["from"] == {"data": "dataset.data"}
    pull(page, dot(page, "train", "out", ""), page.locator(STEP.format("evaluate")))  # its end: after it
    pull(page, dot(page, "evaluate", "out", "figures"), page.locator(STEP.format("train")))
    expect(page.locator(".pl-hint.is-wrong")).to_contain_text(": this would create a cycle.")
    steps = spec(page)["steps"]
    assert steps["evaluate"]["after"] == ["train"]
    box = page.locator(".pl-canvas").bounding_box()
    end = dot(page, "evaluate", "in", "data").bounding_box()
    page.mouse.move(end["x"] + 6, end["y"] + 6)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 800, steps=4)  # a link taken up at its end and let go over nothing
    page.mouse.up()
    assert "from" not in spec(page)["steps"]["evaluate"]
    before = page.locator(STEP.format("train")).bounding_box()
    pull(page, page.locator(f"{STEP.format('train')} .pl-step-name"), page.locator(".pl-map"))
    assert page.locator(STEP.format("train")).bounding_box() != before
    page.keyboard.press("Control+z")  # one drag is one entry
    until(page, "editor.graph.undone.length === 1 && !editor.stage.shifted.size")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.locator(STEP.format("train")).bounding_box() == before
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    assert page.evaluate("[...editor.stage.chosen].length") == 3
    assert page.evaluate(OFF_THEIR_PORTS) == []


def test_everything_goes_by_keyboard(drawn, accessible):
    page = drawn()
    press = page.keyboard.press
    accessible(page)
    page.locator(STEP.format("cells")).focus()
    press("ArrowRight")
    expect(page.locator(f"{STEP.format('judge')}:focus, {STEP.format('train')}:focus")).to_have_count(1)
    page.locator(STEP.format("train")).focus()
    press("n")
    page.keyboard.type("conv")
    press("Enter")
    expect(page.locator(STEP.format("convert"))).to_be_focused()
    press("c")
    page.keyboard.type("train.model")
    press("Enter")
    expect(page.locator(".pl-hint")).to_have_text("Connected: train.model to convert.model.")
    assert spec(page)["steps"]["convert"] == {"kind": "convert", "from": {"model": "train.model"}}
    here = page.evaluate("editor.graph.places.get('convert')")
    press("Alt+ArrowRight")
    assert page.evaluate("editor.graph.places.get('convert')") == [here[0] + 20, here[1]]
    press("Enter")
    field = page.locator("[data-field=id]")
    expect(field).to_be_focused()
    field.fill("small")
    press("Enter")
    expect(page.locator("[data-field=id]")).to_be_focused()
    press("Escape")
    expect(page.locator(STEP.format("small"))).to_be_focused()
    press("Delete")
    expect(page.locator(STEP.format("small"))).to_have_count(0)
    expect(page.locator(".pl-canvas")).to_be_focused()  # or the keyboard is dead
    page.locator(STEP.format("train")).focus()
    press("Shift+ArrowRight")
    press("Delete")
    assert "train" not in spec(page)["steps"]
    for _ in range(20):
        press("Control+z")
    assert spec(page) == SPEC
    press("Control+a")
    press("Control+c")
    press("Control+v")
    expect(page.locator(".pl-hint")).to_have_text("8 steps pasted.")
    assert len(spec(page)["steps"]) == 16
    press("Control+z")
    assert spec(page) == SPEC
    page.locator(STEP.format("train")).focus()
    page.evaluate("editor.stage.pan(-9000, 0)")
    expect(page.locator(STEP.format("train"))).to_be_focused()  # the only one that is not hidden
    assert page.locator(".pl-step:not([hidden])").count() == 1
    press("?")
    accessible(page)
    press("Escape")
    press("p")
    expect(page.locator(".pl-issues summary")).to_be_focused()


def test_hostile_text_is_refused_in_a_sentence(drawn):
    page = drawn()
    page.locator(STEP.format("train")).focus()
    deep = "[" * 50_000 + "]" * 50_000
    hostile = {
        "<img src=x onerror=alert(1)>": "no pipeline steps",
        json.dumps({"steps": {"a": {"kind": "<img src=x onerror=alert(1)>"}}}): "Unknown step kind <img",
        '{"steps": {"__proto__": {"kind": "train"}}}': "not a valid step name",
        json.dumps({"steps": {"a": {"kind": "train", "from": {"data": 7}}}}): "has an invalid part: from",
        '{"steps": {"a": {"kind": "train", "with": {"params": ' + deep + "}}}}": "nested too deeply",
    }
    for text, said in hostile.items():
        page.evaluate(
            """text => { const data = new DataTransfer(); data.setData("text/plain", text);
            document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true })); }""",
            text,
        )
        expect(page.locator(".pl-hint.is-wrong")).to_contain_text(said)
    assert spec(page) == SPEC
    assert page.locator("#root img").count() == 0


@pytest.mark.long
def test_list_does_all_that_the_canvas_does(drawn, accessible):
    page = drawn(width=390)
    rows = page.locator(".pl-row")
    expect(rows).to_have_count(8)
    accessible(page)

    page.locator(".pl-list-tools button").click()
    page.locator("dialog input").fill("evaluate")
    page.keyboard.press("Enter")
    row = page.locator(".pl-row[data-id=evaluate]")
    expect(row.locator("[data-field=id]")).to_be_focused()
    model = row.locator("[data-field='from.model']")
    expect(row.locator(".form-row.has-error")).to_have_count(2)
    model.focus()
    assert "train.model" in (model.text_content() or "")
    assert "cells.data" not in (model.text_content() or "")  # of another type
    model.select_option("train.model")
    row.locator("[data-field='from.data']").focus()
    row.locator("[data-field='from.data']").select_option("cells.data")
    row.locator("summary", has_text="More").click()
    row.locator("[data-field=when]").focus()
    row.locator("[data-field=when]").select_option("better.refused")
    row.locator("[data-field=after]").focus()
    row.locator("[data-field=after]").select_option("tell")
    row.locator("[data-field=retries]").fill("3")
    row.locator("[data-field=note]").fill("again")
    row.locator("[data-field=rule]").select_option("all_done")
    row.locator("[data-field=id]").fill("again")
    page.keyboard.press("Enter")
    expect(page.locator(".pl-row[data-id=again] [data-field=id]")).to_be_focused()
    assert spec(page)["steps"]["again"] == {
        "kind": "evaluate", "from": {"model": "train.model", "data": "cells.data"}, "when": "better.refused",
        "after": ["tell"], "retries": 3, "note": "again", "rule": "all_done",
    }  # fmt: skip
    train = page.locator(".pl-row[data-id=train]")
    train.locator("summary").first.click()
    train.locator("[data-field='with.epochs']").fill("many")
    expect(train.locator(".form-row.has-error")).to_contain_text("must be a number, or a text such as ${name}")
    train.locator("[data-field='with.epochs']").fill("${preset}")
    train.locator("[data-field='with.params']").fill('{"lr": 0.1}')
    expect(train.locator(".form-row.has-error")).to_have_count(0)
    assert spec(page)["steps"]["train"]["with"] == {"epochs": "${preset}", "params": {"lr": 0.1}, "preset": "${preset}"}
    accessible(page)
    page.locator(".pl-row[data-id=again] .btn-danger").click()
    expect(page.locator(".pl-row[data-id=again]")).to_have_count(0)
    page.keyboard.press("Escape")
    page.locator(".pl-bar button[aria-label=Undo]").click()
    expect(page.locator(".pl-row[data-id=again]")).to_have_count(1)


def test_draft_is_kept_and_two_tabs_do_not_overwrite_each_other(drawn, accessible):
    drafts = Drafts()
    page = drawn(drafts)
    state = page.locator(".pl-bar-state")
    page.locator(STEP.format("train")).click()
    page.locator("[data-field='with.epochs']").fill("4")
    until(page, "editor.draft.state === 'saved' && editor.draft.revision === 2")
    assert drafts.spec["steps"]["train"]["with"]["epochs"] == 4
    assert drafts.spec["steps"]["judge"] == SPEC["steps"]["judge"]  # what the editor does not know is still there
    drafts.away = True
    page.locator("[data-field='with.epochs']").fill("5")
    page.evaluate("void editor.draft.save()")
    expect(state).to_have_text("Offline, stored locally")
    page.reload()
    expect(state).to_have_text("Offline, stored locally")
    assert spec(page)["steps"]["train"]["with"]["epochs"] == 5
    drafts.away = False
    page.evaluate("editor.draft.save()")
    expect(state).to_have_text("Saved")
    assert (drafts.revision, drafts.spec["steps"]["train"]["with"]["epochs"]) == (3, 5)

    drafts.spec["steps"]["train"]["with"]["epochs"], drafts.revision = 6, 4  # another tab
    page.locator(STEP.format("train")).click()
    page.locator("[data-field='with.epochs']").fill("7")
    page.evaluate("void editor.draft.save()")
    box = page.locator("dialog")
    expect(box).to_be_visible()
    box.locator("summary").click()
    expect(box.locator("tbody tr")).to_have_text("with.epochs76")
    accessible(page)
    box.get_by_role("button", name="Use theirs").click()
    expect(state).to_have_text("Saved")
    assert spec(page)["steps"]["train"]["with"]["epochs"] == 6
    page.locator(".pl-bar button[aria-label=Undo]").click()  # mine is not lost
    expect(page.locator("[data-field='with.epochs']")).to_have_value("7")
    until(page, "editor.draft.state === 'saved'")
    assert (drafts.revision, drafts.spec["steps"]["train"]["with"]["epochs"]) == (5, 7)
    page.get_by_role("button", name="Save version").click()
    page.locator("dialog textarea").fill("seven")
    page.locator("dialog button[type=submit]").click()
    expect(page.locator(".toast", has_text="Version 1 is saved.")).to_be_visible()
    assert drafts.versions[0]["note"] == "seven"
    assert drafts.versions[0]["spec"] == spec(page)
    page.locator("[data-field='with.epochs']").fill("8")
    page.evaluate("void editor.draft.save()")
    until(page, "editor.draft.state === 'saved'")
    assert (drafts.revision, drafts.spec["steps"]["train"]["with"]["epochs"]) == (1, 8)


@pytest.mark.long
def test_steps_of_a_run_are_coloured_and_opened(drawn, accessible):
    page = drawn(Drafts(), script=pipeline_page.VIEW)
    page.evaluate(
        """() => view.setStates({ cells: { state: "cached", label: "Cached" },
        train: { state: "started", label: "Running", text: "epoch 3 of 10", progress: 0.3 },
        many: { state: "failed", label: "Failed", items: { ok: 3, failed: 1 } } })"""
    )
    train = page.locator(STEP.format("train"))
    expect(train.locator(".pl-step-state")).to_have_text("Runningepoch 3 of 10")
    expect(train.locator(".pl-step-state use")).to_have_attribute("href", "/static/base/icons.svg#running")
    expect(page.locator(STEP.format("many"))).to_have_attribute(
        "aria-label", "many, Command. Failed 3 ok, 1 failed. each from things"
    )
    accessible(page)
    train.click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    steps = page.evaluate("steps")
    assert steps[0] == "train"
    assert steps[1] in {"judge", "better", "serve", "tell"}
    page.keyboard.press("Delete")
    assert page.evaluate("view.graph.steps.size") == 8


def test_a_drag_whose_release_is_lost_ends_and_tab_stops_are_few(drawn):
    page = drawn()
    press = page.keyboard.press
    draft = page.locator(".pl-wire-draft")
    start = dot(page, "train", "out", "model").bounding_box()
    canvas = page.locator(".pl-canvas").bounding_box()
    ends = {
        "blur": "dispatchEvent(new Event('blur'))",
        "lost": "editor.stage.root.releasePointerCapture(1)",
        "unseen": "editor.stage.root.dispatchEvent(new PointerEvent('pointermove', { pointerId: 1, buttons: 0 }))",
    }
    for end in ends.values():
        page.mouse.move(start["x"] + 6, start["y"] + 6)
        page.mouse.down()
        page.mouse.move(canvas["x"] + 300, canvas["y"] + 30, steps=3)
        expect(draft).to_have_count(1)
        page.evaluate(end)
        page.mouse.move(canvas["x"] + 320, canvas["y"] + 40)
        expect(draft).to_have_count(0)
        page.mouse.up()
        assert page.locator("dialog").count() == 0  # nothing was offered for it
    assert spec(page) == SPEC

    bar = page.locator(".pl-bar")
    assert (
        page.evaluate("[...document.querySelectorAll('.pl-bar button')].filter((one) => one.tabIndex === 0).length")
        == 1
    )
    bar.locator("button").first.focus()
    press("ArrowRight")  # past Undo, Redo and what else cannot be pressed
    expect(bar.locator("button:focus")).to_have_attribute("aria-label", "Paste")
    press("End")
    expect(bar.locator("button").last).to_be_focused()
    press("Tab")
    expect(page.locator(".pl-palette input")).to_be_focused()
    press("Tab")
    expect(page.locator(".pl-kind").first).to_be_focused()
    press("ArrowDown")
    expect(page.locator(".pl-kind").nth(1)).to_be_focused()
    press("Tab")
    expect(page.locator(".pl-canvas")).to_be_focused()
