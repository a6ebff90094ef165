"""The pages of pipelines and their runs in a real browser: a run that asks, answers and ends; triggers; versions."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from inference.pipelines import loop, writing
from inference.pipelines.models import PipelineRun
from tests.browser.conftest import in_both_looks
from tests.factories import work
from tests.pipelines.made import again, command, complete, pipeline, step

STEPS = {
    "train": command("echo ${lr}"),
    "gate": {"kind": "gate", "with": {"rule": "AP50 >= 0.8"}, "from": {"figures": "train.figures"}},
    "ask": {"kind": "approve", "with": {"question": "Ship it to the line?"}, "when": "gate.passed"},
    "ship": command("ship", when="ask.passed"),
    "tell": {"kind": "notify", "with": {"text": "not good enough"}, "when": "gate.refused"},
}


@pytest.fixture
def asking(alice, site):
    """A run that asks Alice."""
    work.node(cores=16)
    run = again(pipeline(alice, STEPS, name="cells weekly", lr=0.1), alice)
    complete(run, "train", figures={"AP50": 0.912, "AP75": 0.7})
    log = work.run_dir(step(run, "train").job, 1).log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(f"epoch {number} of 60: loss {1 / number:.3f}\n" for number in range(1, 61)))
    return run


#: The page shows the next answer; whether the keyboard is still at a button of the opened step.
REDRAWN = """new Promise((done) => document.addEventListener("runshown", () =>
    done(document.activeElement.matches("#run-step-now button")), {once: true}))"""


@in_both_looks
def test_run_asks_and_goes_on(open_as, alice, asking, accessible, fits, shot, width, dark, language):
    type(alice).objects.filter(pk=alice.pk).update(refresh_s=1)
    page = open_as(alice, width=width, height=900, dark=dark, language=language)
    page.goto("/pipelines/")
    accessible(page)
    fits(page)
    page.locator(".notice a").first.click()
    expect(page.locator(".pl-step")).to_have_count(len(STEPS))
    expect(page.locator("#step-ask")).to_contain_text("alice")
    accessible(page)
    fits(page)
    shot(page, f"pipeline-run-{width}")

    opens = page.locator(".pl-step[data-id=train]" if width > 900 else "[data-step-open=train]")
    opens.click()  # on a phone the graph shows what asks, and the table all steps
    expect(page.locator("#step-figures tbody tr")).to_have_count(2)
    expect(page.locator("#run-step [data-log-foot]")).to_contain_text("1")
    expect(page).to_have_url(re.compile(r"\?step=train$"))
    accessible(page)
    fits(page)
    shot(page, f"pipeline-step-{width}", full=True)
    page.locator("#run-step-now button").focus()
    assert page.evaluate(REDRAWN)  # the button that had the keyboard has it again
    page.locator("#run-step [data-step-close]").click()
    expect(page.locator("#h-step")).to_have_count(0)

    page.locator("button[value='passed']").click()
    loop.advance_run(asking.pk)
    expect(page.locator("#step-ship .chip-run")).to_be_visible()
    complete(asking, "ship")
    assert PipelineRun.objects.get().state == "ok"
    expect(page.locator(".pl-step[data-state='ok']")).not_to_have_count(0)
    page.goto(f"/pipelines/{asking.pipeline_id}/")
    accessible(page)
    fits(page)
    shot(page, f"pipeline-{width}")


@pytest.mark.long
def test_pipeline_is_given_a_trigger_and_compared_with_its_past(open_as, alice, asking, accessible, shot):
    made = asking.pipeline
    changed = {**STEPS, "ship": command("ship --fast", when="ask.passed")}
    writing.save_version(made, user=alice, spec={"parameters": {"lr": {"default": 0.2}}, "steps": changed}, note="fast")
    page = open_as(alice, width=1440, height=900)
    page.goto(f"/pipelines/{made.pk}/triggers/new/")
    expect(page.locator("#id_dataset")).to_be_hidden()
    accessible(page)
    page.locator("#id_kind").select_option("dataset")
    expect(page.locator("#id_schedule")).to_be_hidden()
    page.locator("#id_kind").select_option("cron")
    page.locator("#id_schedule").fill("30 2 * * 0")
    page.locator("#id_zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Add trigger").click()
    expect(page.locator("#pipeline-triggers tbody tr")).to_have_count(1)
    shot(page, "pipeline-trigger")

    page.get_by_role("link", name="Versions", exact=True).click()
    expect(page.get_by_role("listitem").filter(has_text="ship --fast")).to_be_visible()
    accessible(page)
    page.get_by_role("link", name="View", exact=True).last.click()
    expect(page.locator(".pl-step[data-id='ship']")).to_be_visible()
    accessible(page)
    shot(page, "pipeline-version")
    page.get_by_role("button", name="Use as draft").click()
    page.wait_for_selector("#pipeline-editor:not([data-busy])")
    assert page.evaluate("pipelineEditor.graph.steps.get('ship').with.command") == "ship"  # as it was in version 1
    page.goto(f"/pipelines/{made.pk}/versions/")
    page.get_by_role("link", name="As text").first.click()
    expect(page.locator("textarea[name='text']")).to_contain_text("ship --fast")
    accessible(page)
    shot(page, "pipeline-text")
    assert step(asking, "ask").state == "asking"
