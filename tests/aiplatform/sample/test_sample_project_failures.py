"""The sample project where something fails, is deleted or completes meanwhile."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import StillInUse
from aiplatform.pages.sample import creation, data, removal
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Dataset, DatasetVersion, Import
from inference.registry.models import Model, ModelVersion
from tests.aiplatform.sample.steps import COUNTS, advance, end_training
from training.runs.models import TrainingJob
from workers.core.models import Job


def test_images_that_cannot_be_imported_fail_the_project_and_are_generated_again(alice, cluster, node, monkeypatch):
    monkeypatch.setattr(creation.imports, "run", lambda pk: Import.objects.update(state="failed", error="Disk full."))
    project = advance(creation.start(alice))
    assert (project.state, str(project.message)) == (
        "failed",
        "The import of the sample dataset failed. See its report.",
    )

    monkeypatch.undo()
    monkeypatch.setattr(data, "COUNTS", COUNTS)
    creation.start(alice)

    assert advance(project).version.splits == COUNTS
    assert Dataset.objects.visible_to(alice).count() == 1


def test_removal_and_retry_keep_versions_that_the_user_added_where_the_first_was_deleted(alice, ready):
    added = ready.dataset.versions.create(number=2, state="ready")
    DatasetVersion.objects.filter(pk=ready.version_id).delete()
    SampleProject.objects.update(state="failed")

    creation.start(alice)
    assert SampleProject.objects.get().dataset is None
    SampleProject.objects.update(dataset=added.dataset)
    removal.start(alice)
    creation.advance(ready.pk)

    assert not SampleProject.objects.exists()
    assert list(DatasetVersion.objects.all()) == [added]
    assert Dataset.objects.get().deleting is False


def test_version_that_is_deleted_during_the_creation_fails_the_project(alice, cluster, node):
    project = advance(creation.start(alice))
    DatasetVersion.objects.filter(pk=project.version_id).delete()

    project = advance(project)

    assert (project.state, project.message.code) == ("failed", "sample.version_gone")


@pytest.mark.parametrize("is_found", [True, False])
def test_removal_takes_the_model_of_a_training_that_completed_meanwhile(alice, cluster, node, tmp_path, is_found):
    project = advance(creation.start(alice))
    version = end_training(project, tmp_path)
    if not is_found:
        ModelVersion.objects.update(job=None)
        Job.objects.filter(pk=project.job_id).update(attempt_number=1)

    removal.start(alice)
    creation.advance(project.pk)

    if not is_found:  # its registration may still be running
        assert SampleProject.objects.get().state == "removing"
        ModelVersion.objects.filter(pk=version.pk).update(job=project.job_id)
        creation.advance(project.pk)
    assert not Model.objects.exists()
    assert not SampleProject.objects.exists()


def test_removal_that_was_killed_after_the_version_takes_the_empty_model(alice, ready):
    removal.start(alice)
    ModelVersion.objects.filter(pk=ready.model_version_id).delete()

    creation.advance(ready.pk)

    assert not Model.objects.exists()
    assert not SampleProject.objects.exists()


def test_removal_is_refused_while_the_user_trains_on_the_data_of_an_unfinished_project(alice, cluster, node):
    project = advance(creation.start(alice))
    job = Job.objects.create(owner=alice, cluster=cluster, kind="training", name=project.job.name)
    TrainingJob.objects.create(job=job, preset="detect", version=project.version)

    with pytest.raises(StillInUse, match=project.job.name):
        removal.start(alice)

    assert SampleProject.objects.get().state == "creating"


def test_removal_that_fails_is_repeated_and_creates_nothing(as_alice, alice, ready, monkeypatch):
    delete = removal.datasets.delete
    monkeypatch.setattr(removal.datasets, "delete", lambda dataset: _refuse())
    removal.start(alice)
    creation.advance(ready.pk)
    page = as_alice.get("/").content.decode()

    assert SampleProject.objects.get().state == "removal_failed"
    assert "A lease is held." in page
    assert "Remove sample project" in page
    assert 'action="/sample/create/"' not in page
    assert as_alice.post("/api/v1/sample-project/").status_code == 409

    monkeypatch.setattr(removal.datasets, "delete", delete)
    removal.start(alice)
    creation.advance(ready.pk)
    assert not SampleProject.objects.exists()


def _refuse():
    raise StillInUse("A lease is held.", users=[])


def test_second_retry_of_a_failed_project_deletes_nothing(alice, cluster, node, tmp_path):
    project = advance(creation.start(alice))
    end_training(project, tmp_path, state="failed")
    advance(project)
    creation.start(alice)
    again = creation._reset_failed_step(project.pk)  # a request that read the state before the first one changed it

    assert (again.dataset_id, again.state) == (project.dataset_id, "creating")
    assert Dataset.objects.visible_to(alice).count() == 1


def test_end_of_an_endpoint_continues_its_project(alice, cluster, node, tmp_path, monkeypatch):
    project = advance(creation.start(alice))
    end_training(project, tmp_path)
    project = advance(project)
    calls = []
    monkeypatch.setattr(creation, "enqueue", lambda task, **ids: calls.append(ids))

    creation.job_ended(project.service.job)

    assert calls == [{"project_id": project.pk}]


def test_stored_texts_are_in_the_language_of_the_user(alice, cluster, node):
    alice.language = "zh-hans"
    alice.save()

    project = advance(creation.start(alice))

    assert project.dataset.intro == "示例：带边框的手写数字"
