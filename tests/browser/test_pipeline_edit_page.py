"""The page of the pipeline editor: what is drawn there is kept, checked, saved as a version, and led on to a run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from inference.pipelines import writing
from inference.pipelines.models import PipelineDraft, PipelineVersion
from tests.browser.conftest import in_both_looks
from tests.browser.hands import until


@pytest.fixture
def pipeline(alice):
    return writing.create(user=alice, name="cells")


@in_both_looks
def test_a_pipeline_is_drawn_checked_saved_and_run(
    open_as, alice, pipeline, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.goto(f"/pipelines/{pipeline.pk}/edit/")
    page.wait_for_selector("#pipeline-editor:not([data-busy])")
    accessible(page)
    shot(page, f"pipeline-empty-{width}")
    for kind in ("command", "gate"):
        page.locator(".pl-bar button").first.click()
        page.locator("dialog[open] input").fill(kind)
        page.keyboard.press("Enter")
        expect(page.locator(f".pl [data-id={kind}]").first).to_be_visible()
    if width > 900:
        page.locator(".pl-step[data-id=command]").click()
    else:
        page.locator(".pl-row[data-id=gate] summary").first.click()  # closes it
    command = page.locator("[data-field='with.command']")
    command.fill("echo ${preset}")
    until(page, "pipelineEditor.issues.all.some(({ step }) => step === 'gate')")
    until(page, "pipelineEditor.issues.checked > 0 && pipelineEditor.draft.state === 'saved'")
    draft = PipelineDraft.objects.get(pipeline=pipeline, person=alice)
    assert draft.spec["steps"]["command"]["with"] == {"command": "echo ${preset}"}
    accessible(page)
    fits(page)
    shot(page, f"pipeline-drawn-{width}")

    page.locator(".pl-bar-acts .btn").last.click()  # what cannot run is not run, and leads to why
    expect(page.locator(".pl-issues summary")).to_be_focused()
    expect(page.locator(".pl-issues-list button").first).to_be_visible()
    accessible(page)
    command.fill("echo yes")
    page.evaluate("pipelineEditor.remove(['gate'])")
    until(page, "!pipelineEditor.issues.own.length")
    page.locator(".pl-bar-acts .btn-primary").click()
    page.locator("dialog[open] textarea").fill("first")
    page.locator("dialog[open] button[type=submit]").click()
    expect(page.locator(".toast-ok")).to_be_visible()
    version = PipelineVersion.objects.get(pipeline=pipeline)
    assert (version.number, version.note, list(version.spec["steps"])) == (1, "first", ["command"])
    page.locator(".pl-bar-acts .btn").last.click()
    expect(page).to_have_url(re.compile(rf"/pipelines/{pipeline.pk}/run/\?version=1$"))
    page.goto(f"/pipelines/{pipeline.pk}/edit/")
    page.wait_for_selector("#pipeline-editor:not([data-busy])")
    assert page.evaluate("[...pipelineEditor.graph.steps.keys()]") == ["command"]
