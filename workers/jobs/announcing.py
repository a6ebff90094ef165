"""Notifications to owners about how their jobs ended. May be called twice for an attempt; notifies once."""

from __future__ import annotations

from django.utils import translation
from django.utils.translation import gettext as _

from accounts.services.notify import notify
from aiplatform.lib.sentences import said
from workers import kinds
from workers.models import Attempt, Job
from workers.states import COMPLETED, JobState, Reason


def ended(job: Job, attempt: Attempt) -> None:
    """Notify the owner of the end of `attempt`, unless the job goes on or they ended it themselves.

    Args:
        job: read again here: a failure that was queued again in the same breath is no failure.
    """
    job = Job.objects.select_related("owner").get(pk=job.pk)
    with translation.override(job.owner.speaks):
        news = _news(job, attempt)
        if news is None:
            return
        kind, title = news
        text = said(attempt.sentence or job.sentence)
        notify(
            job.owner,
            kind,
            title=title % {"kind": kinds.label_of(job.kind), "name": job.name},
            text=text,
            url=kinds.url_of(job),
            key=f"job-{job.pk}-{attempt.number}",
        )


def _news(job: Job, attempt: Attempt) -> tuple[str, str] | None:
    """(kind of notification, its title with places for kind and name)."""
    if attempt.number == job.attempt_number and job.is_final:
        if job.state in COMPLETED:
            return "finished", _("%(kind)s “%(name)s” completed")
        if job.state == JobState.STOPPED:
            return None if job.reason == Reason.OWNER else ("failed", _("%(kind)s “%(name)s” was stopped"))
        return "failed", _("%(kind)s “%(name)s” failed")
    if attempt.reason == Reason.PREEMPTED:
        return "preempted", _("%(kind)s “%(name)s” made room and waits again")
    return None
