"""Lost attempts: an attempt that ended for no fault of its own queues its job again, from its newest checkpoint.

Supervisor, machine or another part of the job is gone. Nobody requested that, so what was requested before still holds:
a paused job comes back paused, and one that was to end ends. One that was to finish has finished early where it is
certainly over and has saved something, as if it had been killed on the way; else it is stopped.
"""

from __future__ import annotations

from django.db import transaction

from aiplatform.lib import files, wording
from aiplatform.lib.wording import Message
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import WAITS_FOR_OWNER, Desired, Event, JobState
from workers.jobs import checkpoints, transitions

MAX_LOSSES = 5
"""A job that is lost so often in a row, on machines that live, is broken or breaks them."""
_ENDING = (Desired.STOP, Desired.FINISH)
_CAN_FINISH = (JobState.STARTING, JobState.RUNNING, JobState.PAUSED)


@transaction.atomic
def lose(
    attempt: Attempt,
    *,
    reason: str,
    message: Message,
    again: Message,
    at_most: int | None = MAX_LOSSES,
    is_over: bool = False,
) -> Job:
    """End a live attempt as lost and queue its job again, unless its end was requested.

    Args:
        again: what the event log says to its queueing.
        at_most: losses after which it stays lost; None: whatever happens to its machines, it goes on.
        is_over: nothing of it runs any more, anywhere: its files stay as they are.

    Raises:
        StaleReport, IllegalMove: it ended otherwise meanwhile.
    """
    job = Job.objects.select_for_update().get(pk=attempt.job_id)
    stays, losses = stays_paused(job), job.attempts.filter(state=JobState.LOST).count()
    if job.desired == Desired.FINISH and is_over and _has_saved(job):
        if job.state in _CAN_FINISH:
            job = transitions.move(job.pk, Event.FINISH_REQUESTED, attempt=attempt.number, reason=job.reason)
        if job.state == JobState.FINISHING:
            early = wording.message("job.finished_by_loss", why=message)
            return transitions.move(job.pk, Event.EXITED_EARLY, attempt=attempt.number, reason=reason, message=early)
    if job.desired in _ENDING and job.state != JobState.STOPPING:
        job = transitions.move(job.pk, Event.STOP_REQUESTED, attempt=attempt.number, reason=job.reason)
    for_good = at_most is not None and losses >= at_most
    job = transitions.move(
        job.pk, Event.LOST, attempt=attempt.number, reason=reason, message=message, for_good=for_good
    )
    if job.state != JobState.LOST or for_good:
        return job
    Job.objects.filter(pk=job.pk).update(resume_from=str(checkpoints.newest_checkpoint(job) or ""))
    job = transitions.move(job.pk, Event.REQUEUED, message=again)
    if stays:
        Job.objects.filter(pk=job.pk).update(desired=Desired.PAUSE)
        job.refresh_from_db()
    return job


def _has_saved(job: Job) -> bool:
    """Whether there is something to keep: a checkpoint, or a file among the outputs of its last attempt."""
    if checkpoints.newest_checkpoint(job):
        return True
    outputs = RunDir.for_attempt(job.pk, job.attempt_number).outputs
    return any(files.walk_beneath(outputs)) if outputs.is_dir() else False


def stays_paused(job: Job) -> bool:
    """Whether a live job that queues again waits, paused, for its owner: it was paused, idle or suspended."""
    if job.desired == Desired.RELEASE or job.state == JobState.PREEMPTING:
        return job.reason in WAITS_FOR_OWNER or _stood_still(job)
    return job.desired == Desired.PAUSE


def _stood_still(job: Job) -> bool:
    """Whether the job was paused when it was requested to make room."""
    turns = job.events.filter(attempt=job.attempt_number, event__in=(Event.PAUSED, Event.RESUMED))
    return turns.order_by("-pk").values_list("event", flat=True).first() == Event.PAUSED
