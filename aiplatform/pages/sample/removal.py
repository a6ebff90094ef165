"""Remove the sample project: exactly the objects that its row names.

Versions that a user added to its dataset or model stay, and so does that dataset or model. Jobs stay in the history,
as of everything that is deleted.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.claims import Claim
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, NotFound, StillInUse
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Import
from datasets.services import datasets, imports, versions
from datasets.services.usage import users_of
from inference.registry import registration
from inference.registry.retention import HOLDERS
from inference.serving import endpoints
from workers.core.clock import now
from workers.jobs import actions

STATE = SampleProject.State


def start(user: User) -> SampleProject:
    """Remove the sample project of a user in the background, also one that is still being created.

    Raises:
        NotFound: there is none.
        StillInUse: other objects of the user need its dataset or model; nothing is removed then.
    """
    project: SampleProject | None = (
        SampleProject.objects.filter(user=user).select_related("version", "model_version", "service", "job").first()
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
        own = project.service.name if project.service else None
        users += [
            str(holder.text % {"name": name, "owner": owner})
            for holder in HOLDERS
            for name, owner in holder.rows(project.model_version)
            if name != own
        ]
    if project.version is not None and (project.job is None or project.job.is_final):
        users += users_of(project.version)
    return sorted(set(users))


def advance(project: SampleProject, claim: Claim) -> None:
    """Remove what can be removed now, the row of the project last."""
    try:
        if _remove_objects(project, claim):
            claim.delete()
        else:
            claim.release(updated_at=now())
    except DomainError as exc:
        claim.release(state=STATE.FAILED, message=wording.of_error(exc), updated_at=now())


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
    if project.model_version is not None:
        registration.delete_version(version=project.model_version, by=user)
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
    others = dataset.versions.exclude(pk=version.pk) if version else dataset.versions.none()
    if version is not None and others.exists():
        versions.delete(version, by=project.user)
    else:
        datasets.delete(dataset)
