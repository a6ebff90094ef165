"""Notifications to owners about how their jobs ended. May be called twice for an attempt; notifies once."""

from __future__ import annotations

from accounts.services.notify import NOTHING, notify
from aiplatform.lib import wording
from workers.core import kinds
from workers.core.models import Attempt, Job
from workers.core.states import COMPLETED, JobState, Reason
from workers.jobs import listeners


def ended(job: Job, attempt: Attempt) -> None:
    """Notify the owner of the end of `attempt`, unless the job goes on or they ended it themselves.

    Args:
        job: read again here: a failure that was queued again in the same breath is no failure.
    """
    job = Job.objects.select_related("owner").get(pk=job.pk)
    news = _news(job, attempt)
    if news is None or kinds.is_quiet(job) or listeners.speak_for(job):
        return
    kind, code = news
    is_ordinary = kind == "finished" and attempt.reason == Reason.DONE  # the title says it all
    notify(
        job.owner,
        kind,
        title=wording.message(code, kind=job.kind, name=job.name),
        text=NOTHING if is_ordinary else attempt.message or job.message,
        url=kinds.url_of(job),
        key=f"job-{job.pk}-{attempt.number}",
    )


def _news(job: Job, attempt: Attempt) -> tuple[str, str] | None:
    """(kind of notification, code of its title)."""
    if attempt.number == job.attempt_number and job.is_final:
        if job.state in COMPLETED and attempt.state not in COMPLETED:
            return None if attempt.reason == Reason.OWNER else ("failed", "news.attempt_failed")
        if job.state in COMPLETED:
            return "finished", "news.completed"
        if job.state == JobState.STOPPED:
            return None if job.reason == Reason.OWNER else ("failed", "news.stopped")
        return "failed", "news.failed"
    if attempt.reason == Reason.PREEMPTED:
        return "preempted", "news.made_room"
    if attempt.reason == Reason.PAUSE_OVER:
        return "idle", "news.pause_over"
    return None
