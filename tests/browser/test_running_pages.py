"""Pages of running work: an evaluation with its newest images, lists with progress and sparklines."""

from __future__ import annotations

import json
import math

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from inference.evaluation import evaluations
from inference.evaluation.evaluator.preview import NAME as PREVIEW
from tests.browser.conftest import in_both_looks
from tests.factories import curves, models, work
from tests.factories import training as trainings
from tests.inference import judged
from tests.inference.running import set_state
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.jobs.output import metrics


@pytest.fixture
def running(alice, site, tmp_path):
    """An evaluation that has predicted three of five images."""
    model, data = models.model_version(alice, tmp_path), judged.dataset_version(alice, tmp_path / "data")
    done = judged.judged(alice, model, data)
    images = (RunDir.for_attempt(done.job_id, 1).outputs / "images.jsonl").read_text().splitlines()
    row = evaluations.submit(user=alice, model_version=model, version=data, split="test")
    set_state(row.job, "running")
    counted = {"phase": "predicting", "phase_done": 3, "phase_total": 5, "progress": 0.6, "eta_s": 12}
    Job.objects.filter(pk=row.job_id).update(**counted)
    outputs = RunDir.for_attempt(row.job_id, 1).outputs
    outputs.mkdir(parents=True, exist_ok=True)
    preview = {
        "summary": {"threshold": 0.5},
        "classes": data.classes,
        "images": [json.loads(one) for one in images[:3]],
    }
    (outputs / PREVIEW).write_text(json.dumps(preview))
    return row


@in_both_looks
def test_a_running_evaluation_shows_its_phase_and_newest_images(
    open_as, alice, running, accessible, fits, shot, width, dark, language
):
    page = open_as(alice, width=width, dark=dark, language=language)
    page.goto(reverse("inference:evaluation-detail", args=[running.pk]))

    expect(page.locator(".phase-steps [aria-current=step]")).to_be_visible()
    expect(page.locator(".judged")).to_have_count(3)
    accessible(page)
    fits(page)
    shot(page, f"evaluation-running-{width}")
    page.goto(reverse("inference:evaluation-list"))
    expect(page.locator(".job-progress progress")).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"evaluations-{width}")


@pytest.fixture
def learned(alice, site):
    """Trainings that run and one that is over, with curves of their own and of the system."""
    work.node(cores=4)
    data = trainings.version(alice, "digits", task="classification")
    rows = []
    for place, state in enumerate(("running", "running", "succeeded")):
        row = trainings.training(alice, data=data, name=f"run-{place}", state=state, preset="classify")
        attempt = row.job.attempts.get()
        curves.report(attempt, "val/accuracy", ((n, 1 - math.exp(-n * (place + 1) / 30)) for n in range(60)))
        curves.report(attempt, "train/loss", ((n, math.exp(-n * (place + 1) / 30)) for n in range(60)))
        metrics.record_system(attempt, {"system/cpu": 80.0, "system/memory_mib": 900.0})
        rows.append(row)
    progress = {"phase": "learning", "phase_done": 60, "phase_total": 100, "progress": 0.6, "eta_s": 70}
    Job.objects.filter(pk=rows[0].job_id).update(**progress)
    Job.objects.filter(pk=rows[1].job_id).update(phase="packing")
    return rows


@in_both_looks
def test_lists_show_progress_and_sparklines(open_as, alice, learned, accessible, fits, shot, width, dark, language):
    page = open_as(alice, width=width, dark=dark, language=language)

    page.goto("/training/")
    expect(page.locator(".training-metric .spark")).to_have_count(3)
    expect(page.locator("progress[value]")).to_have_count(1)
    expect(page.locator("progress:not([value])")).to_have_count(1)
    accessible(page)
    fits(page)
    shot(page, f"trainings-{width}")
    page.goto("/experiments/")
    expect(page.locator(".runs-table .spark polyline[points*=' ']")).to_have_count(3)
    accessible(page)
    shot(page, f"runs-{width}")


def test_compared_runs_have_system_metrics_in_a_tab_of_their_own(open_as, alice, learned, accessible, shot):
    page = open_as(alice)
    page.goto("/training/compare/?" + "&".join(f"training={row.pk}" for row in learned))

    expect(page.locator(".compare-chart:visible")).to_have_count(2)
    page.get_by_role("tab", name="System").click()
    expect(page.locator(".compare-chart:visible")).to_have_count(2)
    expect(page.locator(".compare-chart:visible h3").first).to_contain_text("CPU")
    expect(page.locator(".compare-chart[data-key='system/cpu'] canvas")).to_be_visible()
    assert page.url.endswith("charts=system")
    assert page.locator(".compare-table", has_text="system/").count() == 0
    accessible(page)
    shot(page, "compare-system", full=True)
