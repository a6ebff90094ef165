"""The sample project: created step by step, continued after a kill, removed exactly, by page, API and lists."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from accounts.models import Role
from aiplatform.lib.errors import StillInUse
from aiplatform.pages.sample import creation, progress, removal
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Dataset, DatasetVersion, Import
from inference.registry.models import Model, ModelVersion
from inference.serving.models import Service
from tests.aiplatform.sample.steps import COUNTS, advance, answer, end_training
from tests.factories import datasets, models
from training.runs.models import TrainingJob
from workers.core.models import Job


def test_sample_project_is_created_step_by_step(alice, cluster, node, tmp_path):
    project = advance(creation.start(alice))
    states = [step.state for step in progress.steps(project)]

    assert (project.state, states) == ("creating", ["done", "current", "waiting"])
    assert project.version.splits == COUNTS
    assert project.version.annotated
    assert TrainingJob.objects.get(job=project.job).version == project.version

    version = end_training(project, tmp_path)
    project = advance(project)
    assert (project.model_version, project.service.model_version) == (version, version)
    assert project.state == "creating"

    answer(project)
    project = advance(project)
    assert project.state == "ready"
    assert [step.state for step in progress.steps(project)] == ["done"] * 3


def release_claim() -> None:
    """Let time pass until the claims of a killed process have expired."""
    for rows in (SampleProject.objects, Import.objects):
        rows.update(renewed_at=now() - timedelta(minutes=5))


@pytest.mark.parametrize(
    "step", ["_create_dataset", "_import_version", "_submit_training", "_find_model", "_create_endpoint"]
)
@pytest.mark.parametrize("moment", ["before", "within", "after"])
def test_killed_creation_is_continued_without_losing_or_repeating_a_step(
    alice, cluster, node, tmp_path, monkeypatch, step, moment
):
    function, claim_write, killed = getattr(creation, step), creation.Claim.write, []

    def kill(*args, **kwargs):
        killed.append(step)
        raise KeyboardInterrupt

    def run(project, claim):
        if killed:
            return function(project, claim)
        if moment == "before":
            kill()
        if moment == "within":
            monkeypatch.setattr(creation.Claim, "write", kill)
        try:
            return function(project, claim)
        finally:
            monkeypatch.setattr(creation.Claim, "write", claim_write)
            if moment == "after":
                kill()

    monkeypatch.setattr(creation, step, run)
    project = creation.start(alice)
    for _round in range(4):
        try:
            creation.advance(project.pk)
        except KeyboardInterrupt:
            release_claim()
        project = SampleProject.objects.get(pk=project.pk)
        if project.job_id and not project.job.is_final:
            end_training(project, tmp_path)
        if project.service_id:
            answer(project)

    assert killed == [step]
    assert advance(project).state == "ready"
    counts = [model.objects.count() for model in (Dataset, DatasetVersion, TrainingJob, Model, Service)]
    assert counts == [1, 1, 1, 1, 1]


def test_removal_deletes_exactly_what_was_created(alice, ready, tmp_path, node):
    own = datasets.version(datasets.dataset(alice, "own"))
    own_model = models.model_version(alice, tmp_path, name="own")
    Job.objects.filter(pk=ready.service.job_id).update(state="stopped")

    removal.start(alice)
    creation.advance(ready.pk)

    assert not SampleProject.objects.exists()
    assert list(DatasetVersion.objects.visible_to(alice)) != []
    assert list(Dataset.objects.visible_to(alice)) == [own.dataset]
    assert list(Model.objects.all()) == [own_model.model]
    assert not Service.objects.exists()
    assert Job.objects.filter(pk=ready.job_id).exists()  # the history of jobs stays


def test_removal_keeps_versions_that_the_user_added(alice, ready, tmp_path):
    added = ready.dataset.versions.create(number=2, state="ready")
    trained = models.model_version(alice, tmp_path, name="more", model=ready.model)

    removal.start(alice)
    creation.advance(ready.pk)

    assert list(DatasetVersion.objects.all()) == [added]
    assert list(ModelVersion.objects.all()) == [trained]
    assert Dataset.objects.get().deleting is False


def test_killed_removal_is_continued(alice, ready, monkeypatch):
    removal.start(alice)
    delete = removal.registration.delete_version
    monkeypatch.setattr(removal.registration, "delete_version", lambda **row: 1 / 0 if not row else _interrupt())
    with pytest.raises(KeyboardInterrupt):
        creation.advance(ready.pk)
    assert not Service.objects.exists()
    assert Model.objects.exists()

    monkeypatch.setattr(removal.registration, "delete_version", delete)
    release_claim()
    creation.sweep()
    creation.advance(ready.pk)

    assert not SampleProject.objects.exists()
    assert not Model.objects.exists()


def _interrupt():
    raise KeyboardInterrupt


def test_removal_of_an_unfinished_project_stops_its_training(alice, cluster, node):
    project = advance(creation.start(alice))

    removal.start(alice)
    creation.advance(project.pk)

    assert Job.objects.get().state == "stopped"
    assert not Dataset.objects.visible_to(alice).exists()
    assert not SampleProject.objects.exists()


def test_removal_names_what_still_uses_the_project_and_removes_nothing(alice, ready, cluster):
    job = Job.objects.create(owner=alice, cluster=cluster, kind="training", name="mine")
    TrainingJob.objects.create(job=job, preset="detect", version=ready.version)

    with pytest.raises(StillInUse, match="mine"):
        removal.start(alice)

    assert SampleProject.objects.get().state == "ready"
    assert Service.objects.exists()


def test_failed_training_is_reported_and_tried_again(alice, cluster, node, tmp_path):
    project = advance(creation.start(alice))
    end_training(project, tmp_path, state="failed")
    project = advance(project)

    assert (project.state, project.message.code) == ("failed", "sample.training_ended")

    creation.start(alice)
    project = advance(project)
    assert project.state == "creating"
    assert TrainingJob.objects.count() == 2


def test_second_project_is_refused(as_alice, alice, cluster, node):
    first = as_alice.post("/api/v1/sample-project/")
    second = as_alice.post("/api/v1/sample-project/")

    assert (first.status_code, second.status_code, second.json()["code"]) == (202, 409, "sample_exists")
    assert SampleProject.objects.count() == 1


@pytest.mark.parametrize(
    ("actions", "steps"),
    [
        (["datasets.view", "datasets.create"], ["dataset"]),
        (["datasets.create", "training.submit", "jobs.submit"], ["dataset", "training"]),
        (["datasets.create", "training.submit", "jobs.submit", "services.manage"], ["dataset", "training", "endpoint"]),
    ],
)
def test_project_has_only_what_the_user_may_create(alice, cluster, actions, steps):
    alice.roles.set([Role.objects.create(name="some", actions=["overview.view", *actions])])
    alice.forget_actions()

    assert list(creation.allowed_steps(alice)) == steps


def test_dataset_only_project_is_ready_with_its_dataset(alice, cluster):
    alice.roles.set([Role.objects.create(name="some", actions=["overview.view", "datasets.view", "datasets.create"])])
    alice.forget_actions()

    project = advance(creation.start(alice))

    assert (project.state, project.dataset.owner) == ("ready", alice)
    assert not Job.objects.exists()


def test_users_without_the_right_are_refused_and_see_no_button(as_anna, as_bob, ready):
    assert as_anna.post("/api/v1/sample-project/").status_code == 403
    assert as_anna.post("/sample/create/").status_code == 403
    assert "Load sample project" not in as_anna.get("/").content.decode()
    assert as_bob.get("/api/v1/sample-project/").status_code == 404  # bob has none of his own
    assert as_bob.delete("/api/v1/sample-project/").status_code == 404
    assert SampleProject.objects.get().state == "ready"


def test_pages_load_show_mark_and_remove_the_project(alice, as_alice, ready):
    home = as_alice.get("/").content.decode()
    chips = [as_alice.get(path).content.decode().count("sample-chip")
             for path in ("/datasets/", "/models/", "/services/", "/training/")]  # fmt: skip
    away = as_alice.post("/sample/remove/")

    assert chips == [1, 1, 1, 1]
    assert "Remove sample project" in home
    assert "Load sample project" not in home
    assert away["Location"] == "/"
    assert SampleProject.objects.get().state == "removing"
    assert "Being removed" in as_alice.get("/").content.decode()


def test_empty_lists_and_the_guide_offer_the_project(as_alice, alice, cluster, node):
    pages = [
        as_alice.get(path).content.decode() for path in ("/", "/datasets/", "/models/", "/services/", "/training/")
    ]

    assert [page.count('action="/sample/create/"') for page in pages] == [1] * 5
    as_alice.post("/sample/create/")
    assert 'action="/sample/create/"' not in as_alice.get("/").content.decode()


def test_sample_completes_no_step_of_the_guide(as_alice, ready):
    sections = {row.key: row.data for column in as_alice.get("/").context["columns"].values() for row in column}

    assert sections["guide"]["done"] == 0


def test_looking_at_a_project_continues_it_at_most_every_two_seconds(alice, as_alice, cluster, node, monkeypatch):
    calls = []
    monkeypatch.setattr(creation, "enqueue", lambda task, **ids: calls.append(task))
    creation.start(alice)
    SampleProject.objects.update(updated_at=now() - timedelta(seconds=10))

    for _look in range(3):
        as_alice.get("/api/v1/sample-project/")

    assert calls == ["sample.advance"] * 2  # at the start, and once for three looks


def test_endpoint_that_stopped_before_it_responded_is_started_again(alice, cluster, node, tmp_path):
    project = advance(creation.start(alice))
    end_training(project, tmp_path)
    project = advance(project)
    Job.objects.filter(pk=project.service.job_id).update(state="failed")
    project = advance(project)
    assert (project.state, project.message.code) == ("failed", "sample.endpoint_ended")

    creation.start(alice)
    project = advance(project)
    answer(project)

    assert advance(project).state == "ready"
    assert Service.objects.count() == 1
    assert TrainingJob.objects.count() == 1
