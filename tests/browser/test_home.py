"""The home page in a real browser: guide, sections that change without a reload, the sample project."""

from __future__ import annotations

import pytest
from django.utils.timezone import now

from aiplatform.pages.sample import creation, data
from aiplatform.pages.sample.models import SampleProject
from tests.factories import work
from training.runs.models import TrainingJob
from workers.core.models import Job, VirtualCluster
from workers.jobs.output import metrics


@pytest.fixture
def filled(site, alice):
    """Running, queued and finished work of Alice."""
    cluster = VirtualCluster.objects.get(memberships__user=alice)
    states = {
        "packing_with_a_name_that_is_rather_long": {"state": "running", "phase": "packing", "phase_done": 120,
                                                    "phase_total": 364, "progress": 0.33},
        "cells": {"state": "running", "phase": "learning", "phase_done": 5, "phase_total": 10, "progress": 0.5},
        "waiting": {"state": "queued"},
    }  # fmt: skip
    for name, columns in states.items():
        TrainingJob.objects.create(
            job=work.job(alice, cluster, name=name, kind="training", **columns), preset="detect", version_label="a v1"
        )
    ended = work.job(alice, cluster, name="ended", kind="training", state="running")
    TrainingJob.objects.create(job=ended, preset="detect", version_label="a v1", metrics={"val/ap50": 0.91})
    metrics.add(ended.attempts.get(), [("val/ap50", step, 0.1 * step, now()) for step in range(9)])
    Job.objects.filter(pk=ended.pk).update(state="succeeded", ended_at=now())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_filled_home_page_has_no_accessibility_violation(open_as, alice, filled, accessible, dark):
    page = open_as(alice, dark=dark)
    page.goto("/")
    page.get_by_role("heading", name="Latest results").wait_for()

    accessible(page)


@pytest.mark.parametrize(("width", "rows"), [(1440, 1), (1280, 1), (390, 7)])
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_home_page_fits_its_window_with_the_guide_in_even_rows(open_as, alice, filled, fits, width, rows, language):
    page = open_as(alice, width=width, height=900, language=language)

    page.goto("/")

    fits(page)
    tops = page.locator(".guide-steps > li").evaluate_all("steps => steps.map((step) => Math.round(step.offsetTop))")
    assert len(tops) == 7
    assert len(set(tops)) == rows


def test_sections_appear_and_disappear_without_a_reload(open_as, alice, filled):
    alice.refresh_s = 1
    alice.save()
    page = open_as(alice)
    page.goto("/")
    page.get_by_role("heading", name="Running and queued").wait_for()
    page.evaluate("window.loaded = true")

    Job.objects.exclude(state="succeeded").update(state="stopped")
    page.get_by_role("heading", name="Running and queued").wait_for(state="detached")
    Job.objects.filter(name="cells").update(state="running")
    page.get_by_role("link", name="cells").wait_for()

    assert page.evaluate("window.loaded")


def test_stop_on_a_row_asks_and_returns_to_the_home_page(open_as, alice, filled):
    page = open_as(alice)
    page.goto("/")

    page.get_by_role("button", name="Stop: waiting").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Stop: waiting").wait_for(state="detached")

    assert page.url.endswith("/")
    assert Job.objects.get(name="waiting").state == "stopped"


def test_guide_is_dismissed_and_shown_again(open_as, alice):
    page = open_as(alice)
    page.goto("/")

    page.get_by_role("button", name="Dismiss").click()
    page.get_by_role("link", name="Start training").wait_for()
    page.get_by_role("button", name="Show the first-run guide").click()

    page.get_by_role("heading", name="Get started").wait_for()
    assert page.locator("main .btn-primary").count() == 1


def test_sample_project_is_loaded_shows_its_progress_and_is_removed(open_as, alice, monkeypatch, accessible):
    monkeypatch.setattr(data, "COUNTS", {"train": 4, "val": 2, "test": 2})
    alice.refresh_s = 1
    alice.save()
    work.node(cores=4)
    page = open_as(alice)
    page.goto("/")

    page.get_by_role("button", name="Load sample project").click()
    page.get_by_text("Generating images").wait_for()
    creation.advance(SampleProject.objects.get().pk)
    page.get_by_role("link", name="sample_digits").first.wait_for()
    accessible(page)

    page.get_by_role("button", name="Remove sample project").click()
    page.evaluate("document.querySelector('.sample').remove()")  # a refresh replaces it while the dialog is open
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_text("Being removed").wait_for()
    creation.advance(SampleProject.objects.get().pk)

    page.get_by_role("heading", name="Sample project").wait_for(state="detached")
    assert not SampleProject.objects.exists()


def test_home_page_of_a_new_user_leaves_no_empty_column(open_as, alice, fits):
    work.node(cores=4)
    page = open_as(alice)
    page.goto("/")

    cluster = page.locator("#home-cluster").bounding_box()
    guide = page.locator("#home-guide").bounding_box()

    fits(page)
    assert abs(cluster["x"] - guide["x"]) < 2
