"""Remove the sample project: exactly the objects that its row names.

Versions that a user added to its dataset or model stay, and so does that dataset or model. Jobs stay in the history,
as of everything that is deleted.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.claims import Claim
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, NotFound, StillInUse
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Import
from datasets.services import datasets, imports, usage, versions
from inference.registry import registration, retention
from inference.registry.models import ModelVersion
from inference.serving import endpoints
from training.runs.usage import describe_training
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import COMPLETED
from workers.jobs import actions

STATE = SampleProject.State
REGISTRATION_TIMEOUT = timedelta(minutes=2)  # from the end of the training until its results are published


def start(user: User) -> SampleProject:
    """Remove the sample project of a user in the background, also one that is still being created.

    Raises:
        NotFound: there is none.
        StillInUse: other objects of the user need its dataset or model; nothing is removed then.
    """
    project: SampleProject | None = (
        SampleProject.objects.filter(user=user)
        .select_related("user", "version", "model_version__model__owner", "service", "job__owner")
        .first()
    )
    if project is None:
        raise NotFound(_("You have no sample project."))
    if users := _other_users(project):
        text = _("The sample project is still used by %(users)s. Stop or delete them first.")
        raise StillInUse(text % {"users": ", ".join(users[:10])}, users=users)
    # the task that creates it loses its claim
    SampleProject.objects.filter(pk=project.pk).update(
        state=STATE.REMOVING, holder="", message=wording.Message(), updated_at=now()
    )
    enqueue("sample.advance", project_id=project.pk)
    project.refresh_from_db()
    return project


def _other_users(project: SampleProject) -> list[str]:
    """Return texts that name what needs the dataset or the model, apart from the project's own objects."""
    users: list[str] = []
    if project.model_version is not None:
        endpoint = (project.service.name, project.user) if project.service else None
        users += retention.users_of(project.model_version, except_for=endpoint)
    if project.version is not None:
        training = describe_training(project.job) if project.job else ""
        phrases = usage.users_of(project.version)
        if training in phrases:
            phrases.remove(training)  # one of them: a training of the user may have the same name
        users += phrases
    return sorted({str(user) for user in users})


def advance(project: SampleProject, claim: Claim) -> None:
    """Remove what can be removed now, the row of the project last."""
    try:
        if _remove_objects(project, claim):
            claim.delete()
        else:
            claim.release(updated_at=now())
    except DomainError as exc:
        claim.release(state=STATE.REMOVAL_FAILED, message=wording.of_error(exc), updated_at=now())


def _remove_objects(project: SampleProject, claim: Claim) -> bool:
    """Remove the objects in the order of their dependencies; False while a job has not ended."""
    user = project.user
    if project.service is not None:
        endpoints.delete(service=project.service, by=user)
        claim.write(service=None)
    if project.job is not None and not project.job.is_final:
        if project.job.desired != "stop":
            actions.stop(project.job, by=user)
        project.job.refresh_from_db()
        if not project.job.is_final:
            return False
    version = project.model_version
    if version is None and project.job is not None:
        version = registered_version(project.job)
        if version is None and is_registering(project.job):
            return False
    if version is not None:
        registration.delete_version(version=version, by=user)
    elif project.model is not None and not project.model.versions.exists():  # killed after its version was deleted
        registration.delete(model=project.model, by=user)
    claim.write(model=None, model_version=None)
    if project.dataset is not None:
        _remove_dataset(project)
        claim.write(dataset=None, version=None)
    return True


def _remove_dataset(project: SampleProject) -> None:
    dataset, version = project.dataset, project.version
    assert dataset is not None
    for row in dataset.imports.filter(state__in=Import.OPEN):
        imports.stop(row)
    others = dataset.versions.all() if version is None else dataset.versions.exclude(pk=version.pk)
    if not others.exists():
        datasets.delete(dataset)
    elif version is not None:
        versions.delete(version, by=project.user)


def registered_version(job: Job) -> ModelVersion | None:
    """Return the model version that a training left."""
    version: ModelVersion | None = (
        ModelVersion.objects.filter(job=job, source=ModelVersion.Source.TRAINING).select_related("model").first()
    )
    return version


def is_registering(job: Job) -> bool:
    """Whether the model of a training that has ended may still come: its results are not published yet."""
    if job.state not in COMPLETED or job.published_attempt >= job.attempt_number:
        return False
    return job.ended_at is None or now() - job.ended_at <= REGISTRATION_TIMEOUT
