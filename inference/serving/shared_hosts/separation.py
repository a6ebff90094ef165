"""Services that leave a shared process: their model cannot be loaded there, or was at work at two crashes in a row.

They get a process of their own, where a model that is no good fails alone; the others come back by themselves.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from django.db import transaction

from aiplatform.lib import files, wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.registry import model_jobs, sweeps
from inference.serving import endpoints, host_assignment
from inference.serving.addresses import KIND, ids, is_shared
from inference.serving.models import Service
from inference.serving.server import at_work
from inference.serving.server.host import FAILED
from inference.serving.shared_hosts import folders
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import FINAL, JobState
from workers.jobs import transitions

log = logging.getLogger(__name__)


def look_after_crash(job: Job, attempt: Attempt) -> None:
    """Part those from a process that were at work when it crashed now and the time before."""
    before = job.attempts.filter(number=attempt.number - 1).first()
    if before is None or {attempt.state, before.state} != {JobState.FAILED}:
        return
    for name in suspects(_at_work(job, before), _at_work(job, attempt)):
        move_out(job, name, "service.parted_crash")


def suspects(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """Return the models active at both crashes; if some were loading at both, only those."""
    both = [name for name in now if name in before]
    loading = [name for name in both if now[name] == before[name] == at_work.LOADS]
    return loading or both


def _at_work(job: Job, attempt: Attempt) -> Mapping[str, bytes]:
    outputs = RunDir.for_attempt(job.pk, attempt.number).outputs
    try:
        with os.fdopen(files.open_beneath(outputs, at_work.FILE), "rb") as file:
            return at_work.read(file.read(at_work.SLOT * at_work.SLOTS))
    except (OSError, files.OutsideRoot):
        return {}


def move_out(job: Job, name: str, code: str) -> None:
    """Move a service from a shared process to its own process, and record why; once."""
    pair = ids(name)
    if pair is None:
        return
    with transaction.atomic():
        rows = Service.objects.select_for_update(of=("self",)).select_related("job", "next_job", "owner")
        locked = rows.filter(pk=pair[0]).first()
        if locked is None or not _is_there(locked, job, pair[1]):
            return
        message = wording.message(code, model=_called(locked, pair[1]), service=locked.name)
        _move_out(locked, message)
        endpoints.end(job, None)
        transitions.note(job, "service_parted", message)
    log.warning("job=%s service=%s leaves the process that it shared: %s", job.pk, pair[0], code)


def _is_there(service: Service, job: Job, version: int) -> bool:
    pairs = ((service.job_id, service.model_version_id), (service.next_job_id, service.next_version_id))
    return (job.pk, version) in pairs


def _called(service: Service, version: int) -> str:
    shown = service.next_version if version == service.next_version_id else service.model_version
    return str(shown or service.model_label)


def _move_out(held: Service, message: Message) -> None:
    """Start servers of its own for what a service has in a shared process; stop it where they cannot be had."""
    held.options, held.sharing_message = {**held.options, host_assignment.OPTION: False}, message
    version, coming = held.model_version, held.next_version
    in_host, changes = is_shared(held.job), is_shared(held.next_job)
    host_assignment.leave(held)
    try:
        with transaction.atomic():
            if in_host and version is not None:
                held.job = endpoints.submit(held, version)
            if changes and coming is not None:
                held.next_version, held.next_job = coming, endpoints.submit(held, coming)
    except DomainError as refusal:  # a quota: it stays stopped, as its page says
        held.job, held.next_job, held.next_version = None if in_host else held.job, None, None
        log.warning("service=%s has no process: %s", held.pk, refusal)
    held.save()


def sweep() -> None:
    """Fill the folders of all shared processes, part what cannot be loaded, and move what changed its owner."""
    for job in Job.objects.filter(kind=KIND).exclude(state__in=FINAL).select_related("owner"):
        with sweeps.kept_apart(f"job={job.pk} is not filled"):
            folders.sync(job)
            if job.state == JobState.RUNNING:
                for name in model_jobs.read(RunDir.for_attempt(job.pk, job.attempt_number).outputs, FAILED):
                    move_out(job, name, "service.parted_load")
            _move_strangers(job)


def _move_strangers(job: Job) -> None:
    """Restart services that belong to another user by now: users do not share processes."""
    for service in Service.objects.filter(job=job, asleep_at=None).exclude(owner=job.owner_id):
        with transaction.atomic():
            locked = Service.objects.select_for_update(of=("self",)).select_related("job", "owner").get(pk=service.pk)
            host_assignment.leave(locked)
            endpoints.start_held(locked)
