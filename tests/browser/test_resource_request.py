"""What a job asks of the machines, as people fill it in: shares, urgency, the scheduler's answer, another priority."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.factories import training as factory
from tests.factories import work
from training.runs.models import TrainingJob

pytestmark = pytest.mark.long


@pytest.fixture
def machine(transactional_db):
    return work.node("node1", gpus=2, simulated=True)


def test_training_form_requests_a_card_share_and_the_scheduler_answers(open_as, olga, machine, accessible, fits, shot):
    factory.version(olga, "cells")
    page = open_as(olga)
    page.goto("/training/new/")
    expect(page.get_by_text("Can start now on node1.")).to_be_visible()

    page.get_by_text("Change", exact=True).click()
    page.get_by_label("GPU utilization").select_option(label="2/8 of a GPU, 4 GiB of its memory")
    page.get_by_text("More: memory, disk, priority, run time").click()
    page.get_by_label("Maximum memory").fill("2")
    page.get_by_role("checkbox", name="Urgent").check()
    expect(page.get_by_text("Can start now on node1.")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, "asking-training", full=True)
    page.get_by_role("spinbutton", name="GPUs").fill("2")
    page.get_by_role("spinbutton", name="GPUs").press("Tab")
    expect(page.get_by_text("Can never start")).to_be_visible()
    page.get_by_role("spinbutton", name="GPUs").fill("1")
    page.get_by_role("spinbutton", name="GPUs").press("Tab")
    page.get_by_label("Name", exact=True).fill("small")
    page.get_by_label("Dataset", exact=True).select_option(index=1)
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url("**/training/*/")

    job = TrainingJob.objects.get().job
    assert (job.share, job.card_memory_mib, job.memory_mib, job.priority) == (2, 4096, 2048, 100)


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (390, False)])
def test_resource_forms_are_accessible_and_fit(open_as, alice, machine, accessible, fits, shot, width, dark):
    page = open_as(alice, width=width, dark=dark)
    for path in ("/training/new/", "/evaluations/new/", "/services/new/"):
        page.goto(path)
        expect(page.get_by_text("Can start now on node1.")).to_be_visible()
        for change in page.locator(".training-change > summary").all():
            change.click()
        page.get_by_text("More: memory, disk, priority, run time").click()
        assert not page.get_by_role("checkbox", name="Urgent").count()
        accessible(page)
        fits(page)
        shot(page, f"asking{path.replace('/', '-')}{width}", full=True)


@pytest.mark.parametrize("width", [1440, 390])
def test_job_page_changes_the_priority_of_a_waiting_job(open_as, olga, machine, accessible, fits, shot, width):
    job = work.job(olga, olga.memberships.get().cluster, name="waits", gpus_per_node=1, share=2, wait_code="new")
    page = open_as(olga, width=width, dark=width == 390)
    page.goto(f"/jobs/{job.pk}/")

    page.get_by_label("Priority", exact=True).fill("7")
    accessible(page)
    fits(page)
    shot(page, f"asking-priority-{width}", full=True)
    page.get_by_role("button", name="Change").click()

    expect(page.locator(".job-facts dd").get_by_text("7", exact=True)).to_be_visible()
    job.refresh_from_db()
    assert job.priority == 7
