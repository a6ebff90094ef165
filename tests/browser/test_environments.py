"""Environments in a real browser: form, list and panel; every theme and language, and by keyboard."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from training.environments import services
from training.environments.models import Environment
from training.environments.services import EnvironmentRequest
from workers.core.models import Attempt, Job


@pytest.fixture
def machine(site):
    return work.node("node1", gpus=2, simulated=True)


@pytest.fixture
def idle(alice, machine):
    """Alice's environment, which nothing used for long."""
    request = EnvironmentRequest(
        name="Try outs", description="first steps", folder="work", cpus=1.0, max_runtime=timedelta(hours=9)
    )
    row = services.submit(user=alice, request=request)
    then = now()
    Job.objects.filter(pk=row.pk).update(state="running", attempt_number=1)
    Attempt.objects.create(job_id=row.pk, number=1, state="running", started_at=then - timedelta(hours=5))
    Environment.objects.filter(pk=row.pk).update(
        attempt=1, ready_at=then - timedelta(hours=5), looked_at=then, answered_at=then, alive_by="kernel",
        alive_at=then - timedelta(hours=3.6), idle_since=then - timedelta(hours=3.6), warned_at=then,
    )  # fmt: skip
    work.run_dir(row.job, 1).log.write_bytes(b"JupyterLab\n")
    return row


def test_environment_is_started_by_keyboard(open_as, alice, machine, accessible):
    page = open_as(alice)
    page.goto("/environments/")
    page.locator("a", has_text="New workspace").first.press("Enter")
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_label("Folder", exact=True).fill("work")
    accessible(page)
    page.get_by_role("button", name="Start", exact=True).press("Enter")

    page.locator("#h-environment").wait_for()
    assert Environment.objects.get().folder == "work"


@pytest.mark.parametrize(("dark", "language", "width"), [(False, "en", 1440), (True, "zh-hans", 390)])
def test_environment_pages_read_well(open_as, alice, idle, accessible, fits, shot, dark, language, width):
    page = open_as(alice, dark=dark, language=language, width=width)

    for name, path in (("list", "/environments/"), ("new", "/environments/new/"), ("job", f"/jobs/{idle.pk}/")):
        page.goto(path)
        accessible(page)
        fits(page)
        shot(page, f"environments-{name}-{language}", full=True)


def test_page_becomes_ready_though_an_answer_was_lost(open_as, alice, idle):
    ready = Environment.objects.get()
    Environment.objects.update(ready_at=None, answered_at=None, warned_at=None)
    page = open_as(alice)
    page.watch.allow("ERR_FAILED")
    page.watch.allow("htmx:")
    lost = []

    def lose_first(route):
        lost.append(route)
        route.abort() if len(lost) == 1 else route.continue_()

    page.route("**/environments/*/state/", lose_first)
    page.goto(f"/jobs/{ready.pk}/")
    page.locator("#environment[data-condition=starting]").wait_for()
    page.wait_for_event("requestfailed")
    Environment.objects.update(ready_at=ready.ready_at, answered_at=ready.answered_at)

    page.locator("#environment[data-condition=ready]").wait_for()


def test_owner_says_that_it_is_still_needed(open_as, alice, idle):
    page = open_as(alice)
    page.goto(f"/jobs/{idle.pk}/")
    page.locator("#environment-keep").press("Enter")

    page.locator("#environment[data-condition=ready]").wait_for()
    assert page.locator("#environment-keep").count() == 0
    page.locator("#environment-extend").press("Enter")
    page.locator("#environment").get_by_text("5 h 59 min").wait_for()
    assert Environment.objects.get().warned_at is None
