"""Approval: jobs of some kinds wait until somebody in charge of their cluster lets them start."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core import kinds, scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Approval, Job, VirtualCluster
from workers.core.states import Event, JobState, Reason
from workers.jobs import transitions
from workers.resources.clusters import members

MAX_REASON_LENGTH = 300
Answer = Approval.Answer


class AnsweredAlready(DomainError, code="answered_already"):
    """The request is answered already, or the job does not wait any more."""


def is_needed(owner: User, cluster: VirtualCluster, kind: str) -> bool:
    """Whether a job waits for an approval; one of a user who may approve it does not."""
    job_kind = kinds.KINDS.find(kind)
    if job_kind is None or not job_kind.approvable or not cluster.approves_environments:
        return False
    return not members.deciders(cluster).filter(pk=owner.pk).exists()


def request(jobs: Sequence[Job], *, again: bool = False) -> None:
    """Let newly queued jobs wait where they need an approval, and notify those who may approve.

    Args:
        again: a job that was refused and restored waits anew; one that was approved stays so.
    """
    if not jobs or not is_needed(jobs[0].owner, jobs[0].cluster, jobs[0].kind):
        return
    for job in jobs:
        columns = {"answer": Answer.OPEN, "requested_at": now(), "answered_by": None, "answered_at": None, "word": ""}
        row, created = Approval.objects.get_or_create(job=job, defaults=columns)
        if not created:
            if not again or row.answer != Answer.DENIED:
                continue
            Approval.objects.filter(pk=row.pk).update(**columns)
            row.refresh_from_db()
        transitions.note(job, "approval_requested", wording.message("job.approval_requested"), by=job.owner)
        _tell_deciders(row, job)


@transaction.atomic
def answer(row: Approval, *, grant: bool, by: User, word: str = "") -> Approval:
    """Let the job start, or refuse it, once; a refused one ends as stopped.

    Args:
        word: what the owner reads beside the answer.

    Raises:
        AnsweredAlready: it was answered before, or the job ended meanwhile.
    """
    job = Job.objects.select_related("cluster", "owner").get(pk=row.job_id)
    if job.state != JobState.QUEUED:
        raise AnsweredAlready(_("The job is not waiting any more."), state=job.state)
    word = " ".join(word.split())[:MAX_REASON_LENGTH]
    outcome = Answer.GRANTED if grant else Answer.DENIED
    open_still = Approval.objects.filter(pk=row.pk, answer=Answer.OPEN)
    if not open_still.update(answer=outcome, answered_by=by, answered_at=now(), word=word):
        raise AnsweredAlready(_("This request was already answered."))
    if grant:
        transitions.note(job, "approved", _message("job.approved", word), by=by)
    else:
        message = _message("job.refused", word)
        transitions.move(job.pk, Event.STOP_REQUESTED, reason=Reason.REFUSED, message=message, by=by)
    audit.record(by, "job_approved" if grant else "job_refused", job)
    title = wording.message("news.approved" if grant else "news.refused", kind=job.kind, name=job.name)
    notify(
        job.owner,
        "approval",
        title=title,
        text=wording.verbatim(word),
        url=kinds.url_of(job),
        key=f"approval-answer-{row.pk}-{row.requested_at.timestamp():.6f}",
    )
    scheduler_wakeup.notify()
    row.refresh_from_db()
    return row


def _tell_deciders(row: Approval, job: Job) -> None:
    title = wording.message("news.approval_requested", person=job.owner, kind=job.kind, name=job.name)
    for person in members.deciders(job.cluster):
        notify(
            person,
            "approval",
            title=title,
            text=wording.message("news.approval_where", cluster=job.cluster.name),
            url=reverse("workers:cluster-approvals", args=[job.cluster_id]),
            key=f"approval-{row.pk}-{row.requested_at.timestamp():.6f}",
        )


def _message(code: str, word: str) -> wording.Message:
    return wording.message(f"{code}_because", word=word) if word else wording.message(code)
