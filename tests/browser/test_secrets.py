"""Secrets by name: their page, and the choice among them in the editor of pipelines."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.models import NamedSecret
from accounts.services import named_secrets
from inference.pipelines import writing
from inference.pipelines.models import PipelineDraft
from tests.browser.conftest import in_both_looks
from tests.browser.hands import until


@pytest.fixture
def pipeline(alice):
    steps = {
        "use": {"kind": "command", "with": {"command": "true", "secrets": ["OLD_KEY"]}},
        "hook": {"kind": "webhook", "with": {"secret": "OLD_KEY"}},
    }
    named_secrets.add(user=alice, name="WANDB_API_KEY", value="never shown", note="of the lab")
    return writing.create(user=alice, name="cells", spec={"steps": steps})


@in_both_looks
def test_a_secret_is_stored_and_chosen_by_its_name(
    open_as, alice, pipeline, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, height=1000, dark=dark, language=language)
    page.watch.allow("422")  # a value that is too short
    page.goto("/account/secrets/")
    page.locator("a[href='?name=OLD_KEY']").click()
    page.locator("[name=value]").fill("short")
    page.locator("form.form .btn-primary").click()
    expect(page.locator("[name=value]")).to_have_value("")
    expect(page.locator(".form-error")).to_be_visible()
    accessible(page)
    page.locator("[name=value]").fill("first line\nlast line")
    page.locator("form.form .btn-primary").click()
    expect(page.locator("#own-secrets tbody tr")).to_have_count(2)
    assert NamedSecret.objects.filter(user=alice, name="OLD_KEY").exists()
    accessible(page)
    fits(page)
    shot(page, f"secrets-{width}", full=True)

    page.goto(f"/pipelines/{pipeline.pk}/edit/")
    page.wait_for_selector("#pipeline-editor:not([data-busy])")
    where = ".pl-step[data-id=use]" if width > 900 else ".pl-row[data-id=use] summary"
    page.locator(where).first.click()
    page.locator("[data-field='with.secrets'] input[value=WANDB_API_KEY]").check()
    until(page, "pipelineEditor.draft.state === 'saved'")
    accessible(page)
    fits(page)
    shot(page, f"secrets-editor-{width}")
    draft = PipelineDraft.objects.get(pipeline=pipeline, person=alice)
    assert draft.spec["steps"]["use"]["with"]["secrets"] == ["OLD_KEY", "WANDB_API_KEY"]
