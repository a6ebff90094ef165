"""The expert page's two sides, and the pages of templates, arrays and approvals, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.factories import work
from training.commands import services as commands
from training.commands.services import CommandRequest
from training.job_templates import services as templates
from training.job_templates.services import Content
from workers.core.models import Approval, Dependency
from workers.jobs.following import Following

PATIENCE_MS = 60_000  # on a machine that is busy with other things


@pytest.fixture
def machine(db):
    return [work.node(name, cores=16, gpus=2) for name in ("one", "two")]


@pytest.fixture
def things(alice, machine, cluster):
    """A template, an array, a job that follows another, and one that waits for an approval."""
    content = Content(
        request={"command": "python train.py --lr {{ lr }}", "cpus": 1, "gpus_per_node": 1},
        parameters=[
            {"name": "lr", "default": 0.1, "about": "learning rate"},
            {"name": "title", "default": "a", "about": ""},
        ],
    )
    content.request["name"] = "{{ title }}"
    template = templates.create(user=alice, name="nightly", kind="command", content=content, visibility="public")
    listed = commands.submit(user=alice, request=CommandRequest(command="fold", cpus=1.0, array="0-11%2"))
    first = commands.submit(user=alice, request=CommandRequest(command="first", cpus=1.0))
    behind = commands.submit(
        user=alice, request=CommandRequest(command="second", cpus=1.0, following=Following(after=[first.pk], retries=2))
    )
    cluster.approves_environments = True
    cluster.save()
    Approval.objects.create(job=first.job)
    assert Dependency.objects.count() == 1
    return {"template": template, "array": listed.job.array_id, "behind": behind.pk}


@pytest.mark.parametrize(("width", "dark", "language"), [(1440, False, "en"), (390, True, "zh-hans")])
def test_template_and_array_pages_fit_and_are_accessible(
    open_as, olga, things, cluster, accessible, fits, shot, width, dark, language
):
    page = open_as(olga, width=width, dark=dark, language=language)
    number = things["template"].pk
    paths = {
        "templates": "/templates/",
        "template": f"/templates/{number}/",
        "template-edit": f"/templates/{number}/edit/",
        "template-use": f"/templates/{number}/use/",
        "expert": f"/expert/?template={number}",
        "array": f"/arrays/{things['array']}/",
        "follow": f"/jobs/{things['behind']}/follow/",
        "job": f"/jobs/{things['behind']}/",
        "approvals": f"/clusters/{cluster.pk}/approvals/",
        "command-new": "/commands/new/",
    }
    for name, path in paths.items():
        page.goto(path)
        fits(page)
        accessible(page)
        shot(page, f"requests-{name}-{width}", full=True)


def test_expert_page_marks_the_line_of_an_error_and_keeps_the_form(open_as, alice, machine):
    page = open_as(alice)
    page.goto("/expert/")
    text = page.locator("textarea[name=text]")

    text.fill("command: make\ncpus: lots\n")
    expect(page.locator(".expert-gutter .is-wrong")).to_have_text("2")
    page.get_by_role("button", name="Line 2").click()
    assert text.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)") == "cpus: lots"
    text.fill("command: make\ncpus: [1\n")
    expect(page.get_by_text("Invalid YAML")).to_be_visible()
    expect(page.locator("#expert-form [name=command]")).to_have_value("make")


def test_dependencies_are_found_by_name(open_as, alice, things):
    page = open_as(alice)
    page.goto(f"/jobs/{things['behind']}/follow/")
    field = page.locator("[name=after_end]")

    field.press_sequentially("fir")
    expect(page.locator(".job-picker-list .found-hit:visible")).to_have_count(1)
    field.press("ArrowDown")
    field.press("Enter")
    first = Dependency.objects.get().on_id
    expect(field).to_have_value(f"{first}, ")
    expect(page.locator(".job-picker", has=field)).to_contain_text(f"{first} first")
    page.locator("[name=after]").fill("")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"**/jobs/{things['behind']}/")

    assert Dependency.objects.get().needs == Dependency.Needs.END


def test_expert_page_form_and_text_follow_each_other(open_as, alice, machine):
    page = open_as(alice)
    page.goto("/expert/")

    page.get_by_label("Command", exact=True).fill("python train.py")
    page.get_by_label("GPUs", exact=True).fill("1")
    page.get_by_label("GPUs", exact=True).press("Tab")
    text = page.locator("textarea[name=text]")
    expect(text).to_have_value(re.compile("gpus_per_node: 1"), timeout=PATIENCE_MS)
    written = text.input_value()
    text.fill(written + "nodes: 2\nretries: lots\n")
    expect(page.locator("#expert-notes")).to_contain_text("Line", timeout=PATIENCE_MS)
    wrong = page.locator("#expert-notes").inner_text()
    text.fill(written + "nodes: 2\nretries: 4\n")
    expect(page.locator("#expert-form [name=retries]")).to_have_value("4", timeout=PATIENCE_MS)
    nodes = page.locator("#expert-form [name=nodes]").input_value()
    page.locator("#expert-request").get_by_role("button", name="Run").click()
    page.wait_for_url("**/jobs/*/")

    assert "command: python train.py" in written
    assert "retries" in wrong
    assert nodes == "2"
    row = commands.Command.objects.get()
    assert (row.script, row.job.nodes, row.job.gpus_per_node, row.job.retries) == ("python train.py", 2, 1, 4)
