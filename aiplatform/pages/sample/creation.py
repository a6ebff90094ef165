"""Create the sample project step by step: dataset, training, model, endpoint.

`advance` does what can be done now and returns; it is called by a task after each change, by the page and the API that
show the progress, and by a sweep. It may be killed at any point: each object and its reference are written in one
transaction.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import titles, wording
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.pages.sample import data, removal
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Import
from datasets.services import datasets, from_files, imports
from inference.registry.models import Model
from inference.serving import endpoints
from training.runs import jobs
from training.runs.drafts import TrainingRequest
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import COMPLETED

log = logging.getLogger(__name__)
CLAIMS = Claims(ttl=timedelta(seconds=60), ends_with_process=True)
CHECK_INTERVAL = timedelta(seconds=2)  # between two checks that a reader triggers
STATE = SampleProject.State
OPEN = (STATE.CREATING, STATE.REMOVING)
KINDS = (jobs.KIND, endpoints.KIND)
NAME = "sample_digits"
PRESET = "hog_detect"
PARAMS = {"layers": 3, "rounds": 1, "iterations": 60}
TRAINING_CPUS, ENDPOINT_CPUS = 2.0, 0.5


class SampleExists(DomainError, code="sample_exists"): ...


class CannotCreate(DomainError, code="sample_not_possible"): ...


class StepFailed(DomainError, code="sample_step_failed"): ...


def allowed_steps(user: User) -> tuple[str, ...]:
    """Return the steps that the user may do, in their order: a dataset only, or also a model and an endpoint."""
    if not user.can(Action.DATASETS_CREATE):
        return ()
    if not user.can(Action.TRAINING_SUBMIT) or not user.memberships.filter(cluster__closed_at=None).exists():
        return ("dataset",)
    return ("dataset", "training", "endpoint") if user.can(Action.SERVICES_MANAGE) else ("dataset", "training")


def start(user: User) -> SampleProject:
    """Create the sample project of a user in the background; a failed one is continued.

    Raises:
        CannotCreate: the user may not create a dataset.
        SampleExists: it exists, or is being created or removed.
    """
    if not allowed_steps(user):
        raise CannotCreate(_("You cannot create datasets. Ask an administrator for a role that allows it."))
    failed = SampleProject.objects.filter(user=user, state=STATE.FAILED).first()
    if failed is None:
        try:
            with transaction.atomic():
                project = SampleProject.objects.create(user=user, updated_at=now())
        except IntegrityError:
            raise SampleExists(_("You already have a sample project. Remove it first.")) from None
    else:
        project = _reset_failed_step(failed.pk)
    nudge(project)
    return project


@transaction.atomic
def _reset_failed_step(project_id: int) -> SampleProject:
    """Detach the object that failed, so that its step is done again; of two requests only the first does it."""
    changes: dict[str, object] = {"state": STATE.CREATING, "message": wording.Message(), "updated_at": now()}
    if not SampleProject.objects.filter(pk=project_id, state=STATE.FAILED).update(**changes):
        return _load(project_id)
    project = _load(project_id)
    if project.dataset is not None and project.version is None:
        if not project.dataset.versions.exists():  # versions that the user added stay
            datasets.delete(project.dataset)
        changes["dataset"] = None
    if project.job is not None and project.model_version is None and project.job.is_final:
        changes["job"] = None
    if project.service is not None and not project.service.is_up:
        endpoints.delete(service=project.service, by=project.user)
        changes["service"] = None
    SampleProject.objects.filter(pk=project_id).update(**changes)
    return _load(project_id)


def nudge(project: SampleProject) -> None:
    """Have a task continue the project; a lost message only costs until the next check."""
    enqueue("sample.advance", project_id=project.pk)


def nudge_if_due(project: SampleProject) -> None:
    """Continue a project that a user looks at, at most every two seconds."""
    if project.state in OPEN and CLAIMS.is_free(project) and project.updated_at < now() - CHECK_INTERVAL:
        touched = SampleProject.objects.filter(pk=project.pk, updated_at=project.updated_at)
        if touched.update(updated_at=now()):
            nudge(project)


def job_ended(job: Job) -> None:
    """Continue the project whose training or endpoint has ended."""
    if job.kind not in KINDS:
        return
    for project in SampleProject.objects.filter(Q(job=job) | Q(service__job=job), state__in=OPEN):
        nudge(project)


def sweep() -> int:
    """Continue all open projects; returns how many."""
    projects = list(SampleProject.objects.filter(state__in=OPEN).order_by("updated_at")[:200])
    for project in projects:
        nudge(project)
    return len(projects)


def advance(project_id: int) -> None:
    """Do the next steps of a project, unless another task works on it."""
    claim = CLAIMS.acquire(SampleProject.objects.filter(pk=project_id, state__in=OPEN), updated_at=now())
    if claim is None:
        return
    project = _load(project_id)
    try:
        with translation.override(project.user.speaks):
            _advance(project, claim)
    except ClaimLost as exc:
        log.info("sample=%s given up: %s", project_id, exc)
    except DomainError as exc:
        claim.release(state=STATE.FAILED, message=wording.of_error(exc), updated_at=now())
    except Exception:
        log.exception("sample=%s broke off", project_id)
        failed = STATE.REMOVAL_FAILED if project.state == STATE.REMOVING else STATE.FAILED
        claim.release(state=failed, message=wording.message("sample.internal"), updated_at=now())


def _advance(project: SampleProject, claim: Claim) -> None:
    if project.state == STATE.REMOVING:
        removal.advance(project, claim)
        return
    while step := _next_step(project, claim):
        log.info("sample=%s step=%s", project.pk, step)
        project = _load(project.pk)
    claim.release(updated_at=now())


def _load(project_id: int) -> SampleProject:
    rows = SampleProject.objects.select_related("user", "dataset", "version", "job", "model_version", "service__job")
    project: SampleProject = rows.get(pk=project_id)
    return project


def _next_step(project: SampleProject, claim: Claim) -> str:
    """Do one step if it can be done now; "" while something is awaited, and at the end.

    Raises:
        DomainError: a step failed.
    """
    steps = allowed_steps(project.user)
    if project.dataset is None:
        return _create_dataset(project, claim)
    if project.version is None:
        return _import_version(project, claim)
    if "training" not in steps:
        return _finish(claim)
    if project.job is None:
        return _submit_training(project, claim)
    if project.model_version is None:
        return _find_model(project, claim)
    if "endpoint" not in steps:
        return _finish(claim)
    if project.service is None:
        return _create_endpoint(project, claim)
    endpoint = endpoints.refresh(project.service)
    if endpoint.state in {"failed", "lost", "stopped"}:
        raise StepFailed(wording.message("sample.endpoint_ended"))
    return _finish(claim) if endpoint.state == "ready" else ""


def _create_dataset(project: SampleProject, claim: Claim) -> str:
    data.generate_images()
    with transaction.atomic():
        row = from_files.start(
            source=data.SOURCE, origin={}, title=NAME, filename=NAME, by=project.user, wanted="auto", agreed=True
        )
        datasets.edit(row.dataset, intro=_("Sample: handwritten digits with boxes"))
        claim.write(dataset=row.dataset, updated_at=now())
    return "dataset"


def _import_version(project: SampleProject, claim: Claim) -> str:
    """Import the images in this task, unless another one does it already."""
    rows = Import.objects.filter(dataset=project.dataset).order_by("pk")
    first = rows.first()
    if first is None:
        raise StepFailed(wording.message("sample.import_gone"))
    if first.is_working:
        imports.run(first.pk)
        first = rows.first()
    if first is None or first.state in (Import.State.FAILED, Import.State.CANCELLED, Import.State.REPORTED):
        raise StepFailed(wording.message("sample.import_failed"))
    if first.state != Import.State.DONE:
        return ""
    if first.version is None:
        raise StepFailed(wording.message("sample.version_gone"))
    claim.write(version=first.version, updated_at=now())
    return "version"


def _submit_training(project: SampleProject, claim: Claim) -> str:
    taken = set(Model.objects.filter(owner=project.user).values_list("name", flat=True))
    request = TrainingRequest(
        name=titles.derive_name(NAME, taken=taken, room=50), description=_("Training of the sample project"),
        version=project.version, preset=PRESET, params=PARAMS, gpus_per_node=0, cpus=TRAINING_CPUS,
    )  # fmt: skip
    with transaction.atomic():
        training = jobs.submit(user=project.user, request=request)
        claim.write(job=training.job, updated_at=now())
    return "training"


def _find_model(project: SampleProject, claim: Claim) -> str:
    job = project.job
    assert job is not None
    if not job.is_final:
        return ""
    if job.state not in COMPLETED:
        raise StepFailed(wording.message("sample.training_ended", why=job.message))
    version = removal.registered_version(job)
    if version is None:
        if removal.is_registering(job):
            return ""
        raise StepFailed(wording.message("sample.no_model"))
    claim.write(model=version.model, model_version=version, updated_at=now())
    return "model"


def _create_endpoint(project: SampleProject, claim: Claim) -> str:
    version = project.model_version
    assert version is not None
    with transaction.atomic():
        service = endpoints.create(
            user=project.user, name="", model_version=version, description=_("Endpoint of the sample project"),
            cpus=ENDPOINT_CPUS,
        )  # fmt: skip
        claim.write(service=service, updated_at=now())
    return "endpoint"


def _finish(claim: Claim) -> str:
    claim.write(state=STATE.READY, message=wording.Message(), updated_at=now())
    return ""
