"""Datasets of what a job left, by page and API."""

from __future__ import annotations

import os

import pytest

from accounts.access.permissions import Action
from aiplatform import env
from datasets.models import Dataset, Import, Upload
from datasets.services import imports, sources, uploads
from tests.conftest import signed_in
from tests.factories import datasets as pictures
from tests.factories import training as factory
from tests.factories import work
from training.runs import output_panel
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/training/outputs/"


@pytest.fixture
def augmented(alice, cluster):
    """A job of Alice's that is over and left two classes of images, a table, and a link to somewhere else."""
    job = work.job(alice, cluster, name="augment", state="succeeded")
    outputs = RunDir.for_attempt(job.pk, 1).outputs
    for name in ("cat", "dog"):
        (outputs / "made" / name).mkdir(parents=True)
        for number in range(2):
            shade = 40 * number + len(name) + 90 * (name == "cat")
            (outputs / "made" / name / f"{number}.png").write_bytes(pictures.picture(shade=shade))
    (outputs / "results.csv").write_text("epoch,loss\n0,1\n")
    os.symlink("/etc/passwd", outputs / "made" / "cat" / "secret.png")
    return job


def test_outputs_become_a_dataset_that_trainings_may_use(api, augmented):
    made = api.post(ROUTE, {"job": augmented.pk, "name": "more", "folder": "made"}, format="json")
    imports.run(made.json()["id"])

    version = Dataset.objects.get(name="more").newest
    assert made.status_code == 201
    assert (version.image_count, version.annotated, [one["name"] for one in version.classes]) == (
        4, True, ["cat", "dog"],
    )  # fmt: skip
    assert (RunDir.for_attempt(augmented.pk, 1).outputs / "made/cat/0.png").is_file()  # copied, not taken


def test_outputs_are_offered_on_the_page_of_the_job_and_imported_from_there(as_alice, augmented):
    page = as_alice.get(f"/jobs/{augmented.pk}/?tab=files").content.decode()

    answer = as_alice.post(f"/training/outputs/{augmented.pk}/dataset/", {"name": "", "folder": ""})

    row = Import.objects.get()
    assert f"/commands/new/?outputs_of={augmented.pk}" in page
    assert f"/training/outputs/{augmented.pk}/dataset/" in page
    assert answer.url == f"/datasets/{row.dataset_id}/imports/{row.pk}/"
    assert (row.dataset.name, str(row.dataset.owner)) == ("augment", "Alice")


def test_outputs_of_a_training_are_offered_on_its_page(as_alice, alice, cells, machine):
    training = factory.training(alice, data=cells)
    (factory.move(training, "succeeded").outputs / "model.onnx").write_bytes(b"x")

    page = as_alice.get(f"/training/{training.pk}/files/").content.decode()

    assert f"/training/outputs/{training.job_id}/dataset/" in page
    assert f"?preset=own&amp;outputs_of={training.job_id}" in page


def test_what_is_wrong_with_outputs_is_said_at_once(api, alice, cluster, augmented):
    Dataset.objects.create(owner=alice, name="taken")
    running = work.job(alice, cluster, state="running")

    both = api.post(ROUTE, {"job": augmented.pk, "name": "taken", "folder": "none"}, format="json").json()
    out = api.post(ROUTE, {"job": augmented.pk, "folder": "../.."}, format="json").json()
    early = api.post(ROUTE, {"job": running.pk}, format="json").json()

    assert set(both["errors"]) == {"name", "folder"}
    assert set(out["errors"]) == {"folder"}
    assert early["errors"]["job"] == ["The job must end before its outputs can become a dataset."]


def test_outputs_of_others_do_not_exist(bob, augmented):
    page = signed_in(bob).post(f"/training/outputs/{augmented.pk}/dataset/", {})

    assert page.status_code == 404


def test_outputs_are_given_only_to_whom_jobs_are_shown(api, alice, augmented):
    offered = output_panel.context(augmented, alice)["form"]
    role = alice.roles.get()
    role.actions = [action for action in role.actions if action != Action.JOBS_VIEW]
    role.save()

    alice.forget_actions()

    answer = api.post(ROUTE, {"job": augmented.pk, "name": "more"}, format="json")

    assert answer.status_code == 403
    assert offered is not None
    assert output_panel.context(augmented, alice)["form"] is None
    assert not Dataset.objects.filter(name="more").exists()


def test_metadata_of_an_upload_open_no_job_of_others(bob, augmented):
    """Anybody may write the metadata of what they upload."""
    about = {"source": "job", "job": str(augmented.pk), "filename": "x.zip"}
    upload = uploads.create(owner=bob, length=1, metadata=about)
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)
    dataset = Dataset.objects.create(owner=bob, name="theft")

    row = imports.start(dataset=dataset, by=bob, upload_id=upload.pk, wanted="auto", agreed=True)
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.error) == ("failed", "The job or its outputs no longer exist.")
    assert dataset.newest is None


def test_more_than_was_announced_is_copied_only_where_there_is_room(alice, augmented, monkeypatch):
    monkeypatch.setattr(sources, "CHECK_INTERVAL_BYTES", 1)
    monkeypatch.setattr(env, "STORAGE_QUOTA_BYTES", 20)
    about = {"source": "job", "job": str(augmented.pk), "filename": "x.zip"}
    upload = uploads.create(owner=alice, length=1, metadata=about)
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)
    dataset = Dataset.objects.create(owner=alice, name="large")

    row = imports.start(dataset=dataset, by=alice, upload_id=upload.pk, wanted="auto", agreed=True)
    imports.run(row.pk)

    row.refresh_from_db()
    assert row.state == "failed"
    assert "bytes left. Delete datasets you no longer need." in row.error


@pytest.mark.parametrize("folder", ["9" * 400, "a/" * 200 + "b", "é" * 128 + "/x"])
def test_folder_whose_name_no_file_system_takes_is_refused(api, augmented, folder):
    answer = api.post("/api/v1/training/outputs/", {"job": augmented.pk, "folder": folder[:500], "name": "x"})

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["folder"])
