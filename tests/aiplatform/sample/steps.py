"""Steps of the sample project in tests: what its job, its training and its endpoint would do."""

from __future__ import annotations

from django.utils.timezone import now

from aiplatform.pages.sample import creation
from aiplatform.pages.sample.models import SampleProject
from inference.registry.models import ModelVersion
from inference.serving.models import Service
from tests.factories import models
from workers.core.models import Job

COUNTS = {"train": 4, "val": 2, "test": 2}


def advance(project: SampleProject) -> SampleProject:
    creation.advance(project.pk)
    project = SampleProject.objects.get(pk=project.pk)
    assert project.holder == ""
    return project


def end_training(project: SampleProject, tmp_path, state: str = "succeeded") -> ModelVersion | None:
    """Let the training of the project end, with its model in the registry where it completed."""
    Job.objects.filter(pk=project.job_id).update(state=state, ended_at=now())
    if state != "succeeded":
        return None
    version = models.model_version(project.user, tmp_path, name=project.job.name)
    ModelVersion.objects.filter(pk=version.pk).update(job=project.job_id, source=ModelVersion.Source.TRAINING)
    return version


def answer(project: SampleProject) -> None:
    """Let the endpoint of the project run and respond."""
    Job.objects.filter(pk=project.service.job_id).update(state="running", attempt_number=1)
    Service.objects.filter(pk=project.service_id).update(ready_attempt=1)
