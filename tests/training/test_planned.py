"""Upload and train in one act: page, API, command, and what happens when processes die in between."""

from __future__ import annotations

import pytest
from celery import current_app
from django.utils.timezone import now

from aiplatform.lib.claims import new_holder
from datasets.models import Dataset, Import
from datasets.services import imports
from datasets.services.claims import TTL
from tests.datasets.helpers import uploaded, zipped
from tests.factories import datasets as pictures
from tests.factories import training as factory
from training import tasks
from training.runs import parameter_sets, planned
from training.runs.drafts import TrainingRequest
from training.runs.models import PlannedTraining, TrainingJob
from workers.jobs.following import Following

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/training/planned/"
FOLDERS = zipped(
    {
        f"{split}/{name}/{i}.png": pictures.picture(shade=40 * i + 20 * len(name) + 7 * len(split))
        for split in ("train", "val")
        for name in ("cat", "horse")
        for i in range(3)
    }
)


@pytest.fixture
def sent(alice):
    return uploaded(alice, FOLDERS, "animals.zip")


def _import(row):
    """What a worker does with the import."""
    imports.run(row.data_import_id)
    row.refresh_from_db()


def test_planned_training_starts_by_itself_on_what_was_uploaded(alice, api, machine, sent):
    body = {"name": "first", "preset": "classify", "params": {"epochs": 2}, "extra": "-keep:5", "upload": sent.pk}
    made = api.post(ROUTE, body, format="json")
    row = PlannedTraining.objects.get()
    tasks.begin_planned()
    assert (made.status_code, made.json()["state"], made.json()["dataset"]) == (201, "waiting", "animals")
    assert not TrainingJob.objects.exists()

    _import(row)
    tasks.begin_planned()
    tasks.begin_planned()

    training = TrainingJob.objects.get()
    after = api.get(f"{ROUTE}{row.pk}/").json()
    assert (training.job.name, str(training.version), training.job.owner) == ("first", "animals v1", alice)
    assert (training.params["epochs"], training.params["keep_ms"]) == (2.0, 5)
    assert (after["state"], after["training"]) == ("started", training.pk)


def test_planned_training_keeps_everything_it_was_requested_with(alice, machine, cells, sent):
    gentle = parameter_sets.save(user=alice, name="gentle", preset="classify", params={"lr": 0.02})
    asked = TrainingRequest(
        name="a", description="why", preset="classify", params={"lr": 0.02}, set_version=gentle.versions.get(),
        cluster=alice.memberships.first().cluster, gpus_per_node=0, cpus=2.0, memory_mib=512, priority=10,
        preemptible=True, extra="-ShowStep", processes=2,
        following=Following(after=[], after_end=[], outputs_of=[], retries=2, retry_pause_s=7),
    )  # fmt: skip

    row = planned.plan(user=alice, request=asked, upload_id=sent.pk)
    row.refresh_from_db()

    assert planned.request_of(row, cells) == TrainingRequest(**{**vars(asked), "version": cells})


def test_planned_training_takes_the_preset_that_suits_the_labels(alice, machine, sent):
    row = planned.plan(user=alice, request=TrainingRequest(), upload_id=sent.pk)
    _import(row)

    assert planned.start_plan(row.pk)
    assert (TrainingJob.objects.get().preset, TrainingJob.objects.get().job.name) == ("classify", "animals_classify")


def test_planned_training_says_at_once_all_that_can_be_known_before_the_data(api, machine, sent):
    body = {"preset": "classify", "params": {"lr": 99}, "gpus_per_node": 7, "extra": "-x", "upload": sent.pk}

    answer = api.post(ROUTE, body | {"dataset": "~x"}, format="json")

    assert answer.status_code in (400, 409)
    text = str(answer.json())
    assert all(word in text for word in ("lr must be a number", "Unknown switch -x"))
    assert not Dataset.objects.exists()


def test_planned_training_of_the_wrong_task_fails_with_its_reason_and_goes_on_once_mended(alice, api, machine, sent):
    row = planned.plan(user=alice, request=TrainingRequest(preset="detect"), upload_id=sent.pk)
    _import(row)
    planned.start_plan(row.pk)

    row.refresh_from_db()
    assert row.state == "failed"
    assert "animals v1" in str(row.message)
    PlannedTraining.objects.update(request={**row.request, "preset": "classify"})
    assert api.post(f"{ROUTE}{row.pk}/retry/").json()["state"] == "waiting"
    assert planned.begin_due() == 1


def test_planned_training_whose_data_cannot_be_read_says_so(alice, as_alice, machine):
    broken = uploaded(alice, zipped({"readme.txt": b"no pictures"}), "words.zip")
    row = planned.plan(user=alice, request=TrainingRequest(preset="detect"), upload_id=broken.pk)
    _import(row)
    planned.begin_due()

    row.refresh_from_db()
    page = as_alice.get(f"/training/planned/{row.pk}/")
    assert row.data_import.state == Import.State.FAILED
    assert (row.state, row.message.code) == ("failed", "training.import_failed")
    assert row.data_import.error.encode() in page.content


def test_planned_training_that_was_cancelled_never_starts(alice, api, as_alice, machine, sent):
    row = planned.plan(user=alice, request=TrainingRequest(preset="classify"), upload_id=sent.pk)
    as_alice.post(f"/training/planned/{row.pk}/cancel/")
    _import(row)

    assert planned.begin_due() == 0
    assert api.post(f"{ROUTE}{row.pk}/cancel/").json()["code"] == "not_now"
    assert api.post(f"{ROUTE}{row.pk}/retry/").json()["code"] == "not_now"


def test_planned_training_is_made_by_the_form_and_its_page_leads_to_the_training(
    as_alice, as_bob, as_anna, alice, machine, sent
):
    filled = {"preset": "classify", "upload_id": sent.pk, "nodes": 1, "gpus_per_node": 0, "processes": 0}
    answer = as_alice.post("/training/new/", filled | {"cpus": 1, "priority": 0})
    assert answer.status_code == 302, answer.context["form"].errors
    row = PlannedTraining.objects.get()

    waiting = as_alice.get(answer.url)
    assert (answer.url, waiting.status_code) == (f"/training/planned/{row.pk}/", 200)
    assert b"hx-trigger" in waiting.content
    assert [one.pk for one in as_alice.get("/training/").context["planned"]] == [row.pk]
    assert (as_bob.get(answer.url).status_code, as_anna.get(answer.url).status_code) == (404, 403)

    _import(row)
    planned.begin_due()
    over = as_alice.get(answer.url)
    part = as_alice.get(answer.url, headers={"HX-Request": "true"})
    place = f"/training/{TrainingJob.objects.get().pk}/"
    assert (over.url, part.status_code, part.headers["HX-Redirect"]) == (place, 204, place)
    assert as_alice.get("/training/").context["planned"] == []


def test_planned_training_refuses_an_upload_of_somebody_else(api, bob, machine):
    theirs = uploaded(bob, FOLDERS, "bobs.zip")

    answer = api.post(ROUTE, {"preset": "classify", "upload": theirs.pk}, format="json")

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["upload"])


def test_planned_training_goes_on_where_its_worker_died_between_report_and_commit(alice, machine, sent, monkeypatch):
    row = planned.plan(user=alice, request=TrainingRequest(preset="classify"), upload_id=sent.pk)
    with monkeypatch.context() as dead:
        dead.setattr(imports, "_go_on", lambda _row: None)
        _import(row)
    row.data_import.refresh_from_db()
    assert row.data_import.state == Import.State.REPORTED
    Import.objects.update(updated_at=now() - TTL)

    assert planned.begin_due() == 0
    assert imports.sweep() == 1
    _import(row)
    assert planned.begin_due() == 1


def test_page_of_a_plan_goes_on_with_an_import_whose_worker_is_gone(
    alice, as_alice, machine, sent, monkeypatch, django_capture_on_commit_callbacks
):
    row = planned.plan(user=alice, request=TrainingRequest(preset="classify"), upload_id=sent.pk)
    dead = new_holder().rsplit(":", 2)[0] + ":1:x"  # a process of this number that began at another time
    told = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **more: told.append((name, more["kwargs"])))

    for holder in (new_holder(), dead):
        Import.objects.update(state="checking", holder=holder, renewed_at=now(), updated_at=now() - TTL / 2)
        with django_capture_on_commit_callbacks(execute=True):
            as_alice.get(f"/training/planned/{row.pk}/")

    assert told == [("datasets.run_import", {"import_id": row.data_import_id})]


def test_one_broken_plan_says_so_and_stops_no_other(alice, machine, sent):
    broken = planned.plan(user=alice, request=TrainingRequest(preset="classify"), upload_id=sent.pk)
    _import(broken)
    fine = PlannedTraining.objects.create(
        owner=alice, dataset=broken.dataset, data_import=broken.data_import, dataset_name="x",
        request={"preset": "classify"},
    )  # fmt: skip
    PlannedTraining.objects.filter(pk=broken.pk).update(request={**broken.request, "max_runtime_s": "soon"})

    assert planned.begin_due() == 1

    broken.refresh_from_db()
    fine.refresh_from_db()
    assert (broken.state, broken.message.code, fine.state) == ("failed", "training.platform_error", "started")


def test_planned_training_takes_data_that_came_in_after_its_import_was_cancelled(alice, machine, sent):
    row = planned.plan(user=alice, request=TrainingRequest(preset="classify"), upload_id=sent.pk)
    imports.cancel(row.data_import)
    assert planned.begin_due() == 0
    again = imports.start(
        dataset=row.dataset, by=alice, upload_id=uploaded(alice, FOLDERS).pk, wanted="auto", agreed=True
    )
    imports.run(again.pk)
    row.refresh_from_db()
    assert (row.state, row.message.code) == ("failed", "training.import_gone")

    planned.retry(row)

    assert planned.begin_due() == 1
    assert str(TrainingJob.objects.get().version) == "animals v1"


def test_planned_training_refuses_other_data_and_code_by_name_and_keeps_its_parent(api, alice, machine, cells, sent):
    body = {"preset": "classify", "upload": sent.pk}
    parent = factory.training(alice, data=cells)

    refused = api.post(ROUTE, body | {"version": cells.pk, "home_path": "mine"}, format="json")
    assert (refused.status_code, set(refused.json()["errors"])) == (400, {"version", "home_path"})

    api.post(ROUTE, body | {"parent": parent.pk}, format="json")
    _import(PlannedTraining.objects.get())
    planned.begin_due()
    assert TrainingJob.objects.latest("pk").parent == parent
