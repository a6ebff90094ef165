"""More run time than the cluster allows: requested by the owner, answered by who is in charge of the cluster."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import audit
from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from workers.core import kinds, run_time, scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Job, TimeRequest
from workers.core.states import FINAL
from workers.jobs import transitions
from workers.resources.clusters import members

MAX_DURATION = timedelta(days=365)
MAX_REASON_LENGTH = 300


class NoTimeNeeded(DomainError, code="no_time_needed"):
    """The job has no limit, has ended, or is waiting for an answer already."""


@transaction.atomic
def request_time(job: Job, *, hours: float, reason: str, by: User) -> TimeRequest:
    """Request `hours` more than the job's limit; the deciders of its cluster are notified.

    Raises:
        NoTimeNeeded: it has no limit, has ended, or was asked for already.
        Invalid: no reason, or a span that is none.
    """
    span = _span(hours)
    reason = " ".join(reason.split())[:MAX_REASON_LENGTH]
    if not reason:
        raise Invalid(_("Enter a reason for the approver."), field="reason")
    if job.state in FINAL:
        raise NoTimeNeeded(_("The job has ended."))
    if run_time.runtime(job) is None:
        raise NoTimeNeeded(_("The job has no time limit any more."))
    if job.time_requests.filter(answer=TimeRequest.Answer.OPEN).exists():
        raise NoTimeNeeded(_("A request for more time is already pending."))
    row = TimeRequest.objects.create(job=job, requested_by=by, requested_at=now(), span=span, reason=reason)
    transitions.note(job, "time_requested", wording.message("job.more_time_requested", span_s=hours * 3600), by=by)
    for person in members.deciders(job.cluster):
        notify(
            person,
            "approval",
            title=wording.message("news.time_requested", person=by, span_s=hours * 3600, job=job.name),
            text=wording.verbatim(reason),
            url=reverse("workers:cluster-requests", args=[job.cluster_id]),
            key=f"time-request-{row.pk}",
        )
    return row


@transaction.atomic
def answer(request: TimeRequest, *, grant: bool, by: User, hours: float | None = None, word: str = "") -> TimeRequest:
    """Grant or deny, once. What is granted moves the job's limit at once, also while it runs.

    Args:
        hours: how much more, where that differs from what was asked for.

    Raises:
        NotAllowed: one's own request; only who manages all clusters may answer that.
        NoTimeNeeded: it was answered before, or the job has ended.
        Invalid: a span that is none.
    """
    job = Job.objects.select_related("cluster", "owner").get(pk=request.job_id)
    if by.pk in (request.requested_by_id, job.owner_id) and not by.can(Action.CLUSTER_MANAGE):
        raise NotAllowed(_("You cannot approve your own job."))
    if job.state in FINAL:
        raise NoTimeNeeded(_("The job has ended."))
    span = request.span if hours is None else _span(hours)
    outcome = TimeRequest.Answer.GRANTED if grant else TimeRequest.Answer.DENIED
    word = " ".join(word.split())[:MAX_REASON_LENGTH]
    open_still = TimeRequest.objects.filter(pk=request.pk, answer=TimeRequest.Answer.OPEN)
    if not open_still.update(answer=outcome, span=span, answered_by=by, answered_at=now(), word=word):
        raise NoTimeNeeded(_("This request was already answered."))
    if grant:
        grant_time(job, span, by=by, word=word)
    else:
        denied = wording.message("job.more_time_denied_because", word=word)
        transitions.note(job, "time_denied", denied if word else wording.message("job.more_time_denied"), by=by)
    audit.record(by, "time_granted" if grant else "time_denied", job, hours=span.total_seconds() / 3600)
    if job.owner_id != by.pk:
        title = wording.message("news.time_granted" if grant else "news.time_denied", job=job.name)
        notify(job.owner, "approval", title=title, text=wording.verbatim(word), url=kinds.url_of(job),
               key=f"time-answer-{request.pk}")  # fmt: skip
    request.refresh_from_db()
    return request


@transaction.atomic
def grant_time(job: Job, span: timedelta, *, by: User, word: str = "") -> None:
    """Let the job run for `span` longer. The agent passes it to the supervisor within a second."""
    fresh = Job.objects.select_for_update().get(pk=job.pk)
    Job.objects.filter(pk=job.pk).update(more_time=fresh.more_time + span)
    granted = wording.message("job.more_time_granted", span_s=span.total_seconds())
    if word:
        granted = wording.message("job.more_time_granted_because", span_s=span.total_seconds(), word=word)
    transitions.note(job, "time_granted", granted, by=by)
    scheduler_wakeup.notify()


def _span(hours: float) -> timedelta:
    if not 0 < hours <= MAX_DURATION.total_seconds() / 3600:  # also refuses what is no number
        raise Invalid(_("Request more than 0 and at most %(most)s hours.") % {"most": 365 * 24}, field="hours")
    return timedelta(hours=hours)
