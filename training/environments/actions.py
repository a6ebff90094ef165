"""What owners do with their environments beside stopping and restoring them: more time, still needed, delete."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import audit
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid
from training.environments import engine, lifecycle
from training.environments.models import Environment
from workers.core import run_time, scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import JobState
from workers.jobs import more_time, transitions

HOURS = 2.0  # of the button
MAX_HOURS = 24 * 7


class NotNow(DomainError, code="not_now"):
    """The environment is not in a state in which that could be done."""


@transaction.atomic
def mark_needed(environment: Environment, *, by: User) -> None:
    """Mark the workspace as still needed: it is not stopped before another full idle period.

    Raises:
        NotNow: it does not run.
    """
    if environment.job.state != JobState.RUNNING:
        raise NotNow(_("The workspace is not running."))
    lifecycle.mark_needed(environment, now())
    transitions.note(environment.job, "kept", wording.message("environment.kept"), by=by)


@transaction.atomic
def extend(environment: Environment, *, hours: float, by: User) -> bool:
    """Extend the maximum run time by `hours`; return whether it was granted at once.

    Up to what the cluster allows its owner decides. Beyond that those in charge of the cluster are asked.

    Raises:
        NotNow: it has ended, or has no limit.
        Invalid: no span, or too long a one.
        NoTimeNeeded: more time was asked for already.
    """
    if not 0 < hours <= MAX_HOURS:  # also refuses what is no number
        raise Invalid(_("Enter more than 0 and at most %(most)s hours.") % {"most": MAX_HOURS}, field="hours")
    job = Job.objects.select_for_update().select_related("cluster").get(pk=environment.pk)
    if job.is_final:
        raise NotNow(_("The workspace has ended. Restore it to continue."))
    if run_time.runtime(job) is None:
        raise NotNow(_("The job has no time limit any more."))
    if job.state == JobState.RUNNING:
        lifecycle.mark_needed(environment, now())
    span, max_runtime = timedelta(hours=hours), job.cluster.max_runtime
    if job.max_runtime is not None and (max_runtime is None or job.max_runtime + span <= max_runtime):
        Job.objects.filter(pk=job.pk).update(max_runtime=job.max_runtime + span)
        message = wording.message("environment.extended", span_s=span.total_seconds())
        transitions.note(job, "extended", message, by=by)
        scheduler_wakeup.notify()
        return True
    if by.can(Action.CLUSTER_MANAGE):
        more_time.grant_time(job, span, by=by)
        return True
    more_time.request_time(job, hours=hours, reason=_("I am still working in this workspace."), by=by)
    return False


@transaction.atomic
def delete(environment: Environment, *, by: User) -> None:
    """Remove an environment that has ended, with the packages installed in it. Its job stays, for the record.

    Raises:
        NotNow: it has not ended.
    """
    job = Job.objects.select_for_update().get(pk=environment.pk)
    if not job.is_final:
        raise NotNow(_("Stop it before you delete it."))
    engine.forget(job, by=by)
    environment.deleted_at = now()
    environment.save(update_fields=["deleted_at"])
    transitions.note(job, "deleted", wording.message("environment.deleted"), by=by)
    audit.record(by, "environment_deleted", job, owner=job.owner.username)
