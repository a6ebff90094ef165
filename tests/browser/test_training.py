"""The way of a training as a person walks it: choose data, see whether it fits, start, look, restore."""

from __future__ import annotations

import json
import math
import re

import pytest
from playwright.sync_api import expect

from aiplatform.lib.wording import verbatim
from tests.factories import training as factory
from tests.factories import work
from training.runs import publishers
from training.runs.models import TrainingJob
from workers.core.models import Job, JobEvent
from workers.jobs.output import metrics


@pytest.fixture
def machine(transactional_db):
    return work.node("node1", gpus=4, simulated=True)


@pytest.fixture
def running(alice, machine):
    """A training at work: a log, curves, one checkpoint, some outputs."""
    training = factory.training(alice, name="blood_cells", description="All classes, small images", params={"lr": 0.01})
    run = factory.move(training, "running")
    lines = [f"step {n}  loss {2.4 * math.exp(-n / 60):.4f}  lr 0.0100\n" for n in range(0, 240, 4)]
    run.log.write_text("".join(lines))
    points = [
        {"step": n, "time": 1_700_000_000 + n, "train/loss": 2.4 * math.exp(-n / 60) + 0.05 * math.sin(n),
         "train/lr": 0.01 * (1 - n / 400), "progress": n / 400, "eta_s": (400 - n) * 1.5}
        for n in range(0, 240, 4)
    ]  # fmt: skip
    points += [{"step": n, "val/ap50": 0.9 * (1 - math.exp(-n / 80))} for n in range(40, 240, 40)]
    run.metrics.write_text("".join(json.dumps(point) + "\n" for point in points))
    metrics.ingest(training.job.attempts.get())
    factory.checkpoint(run, 120, metric=0.71)
    factory.checkpoint(run, 160, metric=0.78)
    (run.outputs / "model").mkdir()
    (run.outputs / "model" / "model.json").write_text("{}")
    JobEvent.objects.create(
        job=training.job, attempt=1, event="started", state="running", message=verbatim("Runs on node1.")
    )
    return training


def test_training_form_leads_from_data_to_a_queued_training(open_as, alice, machine, accessible, fits, shot):
    factory.version(alice, "cells")
    factory.version(alice, "digits", task="classification")
    page = open_as(alice)
    page.goto("/training/")
    expect(page.get_by_text("No training jobs yet. Choose a dataset and a preset; all other")).to_be_visible()
    accessible(page)
    shot(page, "training-empty")

    page.get_by_role("main").get_by_role("link", name="New training").first.click()
    expect(page.get_by_text("Can start now on node1.")).to_be_visible()
    accessible(page)
    shot(page, "training-new", full=True)
    page.get_by_label("Name", exact=True).fill("my_digits")
    page.get_by_label("Dataset", exact=True).select_option(
        label="digits v1 · 3 images · 2 classes · One class per image"
    )
    expect(page.get_by_role("radio", name=re.compile("^Image classification ResNet"))).to_be_checked()
    expect(page.get_by_role("status").filter(has_text="4 presets fit the dataset")).to_have_count(1)
    expect(page.get_by_role("radio", name=re.compile("^Object detection"))).to_have_count(0)  # folded
    page.get_by_text("Other presets (6)").click()
    reason = "Needs boxes, polygons or masks; this version has one class per image."
    expect(page.get_by_role("radio", name=re.compile(f"^Object detection {reason}"))).to_be_disabled()
    accessible(page)
    shot(page, "training-fitting", full=True)
    page.get_by_text("Change", exact=True).click()
    cards = page.get_by_role("spinbutton", name="GPUs")
    cards.fill("9")
    cards.press("Tab")
    expect(page.get_by_text("Can never start")).to_be_visible()
    shot(page, "training-never", full=True)
    cards.fill("2")
    page.get_by_role("button", name="Start training").click()

    expect(page).to_have_url(re.compile(r"/training/\d+/$"))
    training = TrainingJob.objects.get()
    assert (training.preset, training.job.gpus_per_node) == ("classify", 2)


def test_training_form_refused_keeps_what_was_typed(open_as, alice, machine, accessible, shot):
    factory.version(alice, "cells")
    page = open_as(alice)
    page.watch.allow("status of 422")
    page.goto("/training/new/")
    page.get_by_label("Name", exact=True).fill("two/words")
    page.get_by_label("Dataset", exact=True).select_option(index=1)
    page.locator("[data-of=detect] summary").click()
    page.get_by_label("Learning rate lr").first.fill("50")
    page.get_by_role("button", name="Start training").click()

    expect(page.get_by_text("Only letters, digits, spaces and _ . - + ( ); the first and")).to_be_visible()
    expect(page.get_by_text("lr must be a number from 1e-07 to 10.")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("two/words")
    expect(page.locator("#id_detect__lr")).to_be_focused()  # the first error of the page
    accessible(page)
    shot(page, "training-refused", full=True)


def test_training_form_marks_changed_parameters_and_resets_them(open_as, alice, machine, accessible, fits, shot):
    factory.version(alice, "cells")
    page = open_as(alice)
    page.goto("/training/new/")
    budget, summary = page.locator("#id_detect__budget_minutes"), page.locator("[data-of=detect] summary")

    expect(page.get_by_role("button", name="10 min")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="2 h").click()
    expect(budget).to_have_value("120")
    expect(page.get_by_role("button", name="2 h")).to_have_attribute("aria-pressed", "true")
    summary.click()
    page.locator("#id_detect__lr").fill("0.02")
    page.locator("#id_detect__amp").uncheck()
    expect(summary).to_contain_text("2 changed")
    expect(page.locator(".form-row:has(#id_detect__lr)")).to_contain_text("Default: 0.003")
    accessible(page)
    fits(page)
    shot(page, "training-parameters", full=True)
    page.get_by_role("button", name="Reset Learning rate", exact=True).click()

    expect(page.locator("#id_detect__lr")).to_have_value("0.003")
    expect(page.locator("#id_detect__lr")).to_be_focused()
    expect(summary).to_contain_text("1 changed")


def test_training_form_opens_what_an_error_is_in(open_as, alice, machine, shot):
    factory.version(alice, "cells")
    page = open_as(alice)
    page.watch.allow("status of 422")
    page.goto("/training/new/")
    page.get_by_label("Dataset", exact=True).select_option(index=1)
    page.get_by_text("Change", exact=True).click()
    page.locator("#id_cpus").fill("0")
    page.get_by_text("Change", exact=True).click()
    page.get_by_role("button", name="Start training").click()

    expect(page.locator(".form-row.has-error #id_cpus")).to_be_focused()
    expect(page.locator("[data-of=detect] .form-grid").first).to_be_hidden()
    shot(page, "training-error-in-resources", full=True)


def test_training_form_works_without_scripts(open_as, alice, machine, fits, shot):
    version = factory.version(alice, "cells")
    page = open_as(alice, java_script_enabled=False)
    page.goto(f"/training/new/?version={version.pk}")

    expect(page.locator("#id_detect__budget_minutes")).to_be_visible()
    expect(page.get_by_label("Entry point")).to_be_visible()
    expect(page.get_by_role("heading", name="Image classification", exact=True)).to_be_visible()
    expect(page.locator("[data-values-of]").first).to_be_hidden()
    fits(page)
    shot(page, "training-no-script", full=True)
    page.get_by_role("radio", name=re.compile("^Image tagging")).check()
    page.locator("#id_tag__budget_minutes").fill("3")
    page.get_by_role("button", name="Start training").click()

    training = TrainingJob.objects.get()
    assert (training.preset, training.params["budget_minutes"]) == ("tag", 3.0)


def test_training_form_shows_the_fields_of_own_code(open_as, alice, machine, accessible, fits, shot):
    factory.version(alice, "cells")
    page = open_as(alice)
    page.goto("/training/new/")
    page.get_by_role("radio", name=re.compile("Custom code")).check()

    expect(page.get_by_label("Entry point")).to_be_visible()
    expect(page.locator("[data-of=detect] summary")).to_be_hidden()
    accessible(page)
    shot(page, "training-own-code", full=True)


@pytest.mark.parametrize("tab", ["", "log/", "metrics/", "files/", "events/", "spec/"])
def test_training_page_tabs_are_accessible_and_fit(open_as, alice, running, accessible, fits, shot, tab):
    page = open_as(alice)
    page.goto(f"/training/{running.pk}/{tab}")
    if tab in ("", "metrics/"):
        expect(page.locator("canvas").first).to_be_visible()
    if tab in ("", "log/"):
        expect(page.get_by_text("step 236").first).to_be_visible()
    accessible(page)
    fits(page)
    shot(page, f"training-{tab.strip('/') or 'overview'}", full=True)


@pytest.mark.parametrize(("width", "dark", "language"), [(1024, True, "en"), (390, False, "en"), (390, True, "zh-CN")])
def test_training_pages_work_narrow_and_dark(open_as, alice, running, accessible, fits, shot, width, dark, language):
    for number, state in enumerate(["failed", "paused", "queued"]):
        other = factory.training(alice, data=running.version, name=f"more_{number}")
        if state != "queued":
            factory.move(other, state)
        Job.objects.filter(pk=other.job_id).update(
            wait_code="no_cards",
            wait_args={"asked": 4, "free": 1},
            position=2,
            message=verbatim("The program failed: exit code 1."),
        )
    page = open_as(alice, width=width, dark=dark, language=language)
    for name, url in (("list", "/training/"), ("new", "/training/new/"), ("detail", f"/training/{running.pk}/")):
        page.goto(url)
        page.wait_for_load_state("networkidle")
        accessible(page)
        fits(page)
        shot(page, f"training-{name}-{width}-{'dark' if dark else 'light'}-{language}", full=True)


def test_training_pages_of_restore_presets_and_sets_are_accessible(open_as, alice, running, accessible, fits, shot):
    factory.move(running, "failed")
    alice.parameter_sets.create(name="small_lr", preset="detect", params={"lr": 0.001, "flip": 0.0})
    page = open_as(alice)
    for name, url in (
        ("restore", f"/training/{running.pk}/restore/"),
        ("presets", "/training/presets/"),
        ("params", "/training/params/"),
        ("params-new", "/training/params/new/"),
    ):
        page.goto(url)
        accessible(page)
        fits(page)
        shot(page, f"training-{name}", full=True)


def test_training_list_filters_as_one_types_and_stops_a_job(open_as, alice, running, shot):
    factory.training(alice, data=running.version, name="other")
    page = open_as(alice)
    page.goto("/training/")
    page.get_by_label("Name, preset or dataset").fill("blood")

    expect(page.get_by_role("link", name="other", exact=True)).to_be_hidden()
    expect(page).to_have_url(re.compile("q=blood"))
    page.get_by_role("button", name="Stop blood_cells").click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop blood_cells?")
    shot(page, "training-stop")
    with page.expect_navigation():
        page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    assert Job.objects.get(pk=running.job_id).desired == "stop"


@pytest.fixture
def with_a_model():
    with publishers.RESULTS.temporarily(lambda training: publishers.Result("/models/"), alone=True):
        yield


def test_training_page_offers_the_model_at_the_end_without_a_reload(open_as, alice, running, with_a_model):
    page = open_as(alice)
    page.goto(f"/training/{running.pk}/")
    expect(page.locator("#run-again")).to_be_visible()
    expect(page.get_by_role("link", name="View model")).to_have_count(0)
    page.evaluate("document.body.dataset.same = 'yes'")

    factory.move(running, "succeeded")
    Job.objects.filter(pk=running.job_id).update(published_attempt=1)
    TrainingJob.objects.filter(pk=running.pk).update(published_attempt=1)

    expect(page.get_by_role("link", name="View model")).to_be_visible()
    page.locator("#run-again summary").click()
    expect(page.locator("#again-restore-from[href]")).to_be_visible()
    assert page.evaluate("document.body.dataset.same") == "yes"
