"""What people request of a job: pause, continue, finish, stop, restore. The row keeps it; facts follow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core import kinds, scheduler_wakeup
from workers.core.models import Dependency, Job, Node
from workers.core.states import COMPLETED, FINAL, Desired, Event, IllegalMove, JobState, Reason
from workers.jobs import approval, buttons, checkpoints, resource_request, root_rights, transitions


@transaction.atomic
def prioritise(job: Job, priority: int, *, by: User) -> Job:
    """Give a waiting job another priority; its event log says who did.

    Raises:
        IllegalMove: it does not wait any more.
        Invalid, NotAllowed: see `resource_request.check_priority`; urgent work of others needs that right too.
    """
    resource_request.check_priority(by, priority)
    fresh = Job.objects.get(pk=job.pk)
    if by.pk != fresh.owner_id:
        resource_request.check_priority(by, fresh.priority)
    if fresh.priority == priority:
        return _refreshed(job, fresh)
    if not Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(priority=priority):
        raise IllegalMove(_("Only the priority of a queued job can be changed."), state=fresh.state, verb="priority")
    message = wording.message("job.priority_changed", old=fresh.priority, new=priority)
    transitions.note(fresh, "priority_changed", message, by=by)
    scheduler_wakeup.notify()
    return _refreshed(job, Job.objects.get(pk=job.pk))


@transaction.atomic
def pause(job: Job, *, by: User | None = None) -> Job:
    """Pause a running job: memory is kept, computing stops.

    Raises:
        IllegalMove: it cannot be paused now; the sentence says why.
    """
    return _request(job, "pause", Desired.PAUSE, by, wording.message("job.pause_requested"))


@transaction.atomic
def resume(job: Job, *, by: User | None = None) -> Job:
    """Let a paused job go on.

    Raises:
        IllegalMove: it is not paused.
    """
    return _request(job, "continue", Desired.RUN, by, wording.message("job.continue_requested"))


@transaction.atomic
def suspend(job: Job, *, by: User | None = None) -> Job:
    """Let a running or paused job save and release its devices; it waits, paused, until it is continued.

    Raises:
        IllegalMove: it cannot save, or holds nothing to give back.
    """
    message = wording.message("job.suspend_requested")
    return _request(job, "suspend", Desired.RELEASE, by, message, reason=Reason.SUSPENDED)


@transaction.atomic
def finish(job: Job, *, by: User | None = None, reason: str = "", message: Message = transitions.NOTHING) -> Job:
    """End a job now and keep its result; counts as completed.

    Args:
        reason: a `Reason` where the platform wants it; PRUNED lets programs leave out whatever only a result needs.
        message: what the event log says; by default who asked.

    Raises:
        IllegalMove: it has not begun, has ended, or its kind has nothing to keep.
    """
    message = message or wording.message("job.finish_requested")
    return _request(job, "finish", Desired.FINISH, by, message, reason=reason)


@transaction.atomic
def stop(job: Job, *, by: User | None = None, reason: str = "", message: Message = transitions.NOTHING) -> Job:
    """End a job. One that waits ends at once.

    Args:
        reason: a `Reason`; by default the owner's or an operator's request.
        message: what the event log says; by default who asked.

    Raises:
        IllegalMove: it has ended, or is stopping already.
    """
    fresh = Job.objects.get(pk=job.pk)
    why = reason or (Reason.OWNER if by is None or by.pk == fresh.owner_id else Reason.OPERATOR)
    if fresh.state == JobState.QUEUED:
        return _refreshed(job, transitions.move(job.pk, Event.STOP_REQUESTED, reason=why, message=message, by=by))
    return _request(job, "stop", Desired.STOP, by, message or wording.message("job.stop_requested"), reason=why)


@transaction.atomic
def force_stop(job: Job, *, by: User) -> Job:
    """End a job without any grace, also one that is stopping already: all of its processes are killed at once.

    One that waits ends at once. Where a machine of the job does not answer, the request stands, and the job says so.

    Raises:
        IllegalMove: it has ended.
        StaleReport: somebody moved it first.
    """
    fresh = Job.objects.get(pk=job.pk)
    audit.record(by, "job_forced", fresh, owner=fresh.owner.username)
    if fresh.state == JobState.QUEUED:
        return stop(job, by=by)
    if fresh.is_final:
        raise IllegalMove(_("The job has ended."), state=fresh.state, verb="force")
    unchanged = Job.objects.filter(pk=fresh.pk, state=fresh.state, desired=fresh.desired)
    asked_before = fresh.desired == Desired.STOP and fresh.reason
    reason = fresh.reason if asked_before else Reason.OWNER if by.pk == fresh.owner_id else Reason.OPERATOR
    message = _forced_message(fresh)
    if not unchanged.update(desired=Desired.STOP, forced_at=now(), reason=reason, message=message):
        raise transitions.StaleReport(_("%(job)s was moved by another user.") % {"job": fresh})
    transitions.note(fresh, "force_requested", message, by=by)
    scheduler_wakeup.notify()
    return _refreshed(job, Job.objects.get(pk=job.pk))


def _forced_message(job: Job) -> Message:
    """Message of the job from now on: whether its nodes answer."""
    held = Node.objects.filter(allocations__attempt__job=job, allocations__released_at=None).distinct()
    silent = [(now() - node.heartbeat_at, node.name) for node in held]
    silent = sorted(pair for pair in silent if pair[0] > timedelta(seconds=env.NODE_SUSPECT_S))
    if not silent:
        return wording.message("job.force_requested")
    longest = silent[-1][0].total_seconds()
    return wording.message("job.force_unheard", nodes=sorted(name for _age, name in silent), seconds=round(longest))


@transaction.atomic
def restore(
    job: Job, *, by: User | None = None, checkpoint: str | None = None, changes: Mapping[str, Any] | None = None
) -> Job:
    """Queue an ended job again, to go on from a checkpoint.

    Args:
        checkpoint: directory of a checkpoint of this job; None takes the newest of its attempts, if any.
        changes: keys of `spec` to replace.

    Raises:
        IllegalMove: it has not ended, or its kind cannot go on.
        Invalid: the checkpoint lies outside the job's own folder.
        DomainError: the kind refuses, where the owner may no longer use data or cluster.
    """
    fresh = Job.objects.get(pk=job.pk)
    button = next(button for button in buttons.list_buttons(fresh) if button.verb == "restore")
    if not button.allowed:
        raise IllegalMove(button.why, state=fresh.state, verb="restore")
    root_rights.check_restore(fresh)
    kinds.get(fresh.kind).check_restore(fresh)
    folder = checkpoints.own_checkpoint(fresh, checkpoint) if checkpoint else checkpoints.newest_checkpoint(fresh)
    spec = {**fresh.spec, **(changes or {})}
    Job.objects.filter(pk=fresh.pk).update(resume_from=str(folder or ""), spec=spec)
    vain = fresh.dependencies.filter(needs=Dependency.Needs.SUCCESS, on__state__in=FINAL - COMPLETED)
    vain.delete()  # else the next pass would stop it again
    moved = transitions.move(fresh.pk, Event.RESTORED, by=by)
    approval.request([moved], again=True)
    return _refreshed(job, moved)


@transaction.atomic
def release(job_id: int, *, for_job: int, why: str = "urgent") -> Job:
    """Ask a running job to leave a checkpoint and its devices, for `for_job`; it queues again at its old place.

    A paused one comes back paused. Nobody is sent away before `AIP_MIN_RUN_S` of run time, but for a guarantee.

    Args:
        why: "urgent", "guarantee" (the devices were borrowed), "window" (the machines are kept for other work)
            "turn" (it was let ahead of a job that waited longer) or "idle" (nobody uses it: it then waits, paused, for
            its owner).

    Raises:
        IllegalMove: it does not run, is ending already, or has not run for long enough.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    attempt = job.attempts.filter(number=job.attempt_number, ended_at=None).first()
    if job.state not in (JobState.RUNNING, JobState.PAUSED) or job.desired not in (Desired.RUN, Desired.PAUSE):
        raise IllegalMove(_("Only running jobs can be preempted."), state=job.state, verb="release")
    started_at = (attempt.started_at or attempt.assigned_at) if attempt else now()
    if why != "guarantee" and now() - started_at < timedelta(seconds=env.MIN_RUN_S):
        raise IllegalMove(_("The job has not run long enough to be preempted."), state=job.state, verb="release")
    message = wording.message(f"job.room_for_{why}", job=for_job)
    columns = {"reason": Reason.IDLE} if why == "idle" else {}
    return transitions.request_room(job, Desired.RELEASE, message, makes_room_for=for_job, **columns)


@transaction.atomic
def release_idle(job_id: int, *, message: Message) -> Job:
    """Ask a job whose cards do nothing to leave a checkpoint and the cards; it then waits, paused, for its owner.

    Raises:
        IllegalMove: it does not run, or is ending already.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    if job.state != JobState.RUNNING or job.desired != Desired.RUN:
        raise IllegalMove(_("Only running jobs can be preempted."), state=job.state, verb="release")
    return transitions.request_room(job, Desired.RELEASE, message, reason=Reason.IDLE)


@transaction.atomic
def release_paused(job_id: int, *, message: Message) -> Job:
    """Ask a job that was paused for too long to leave a checkpoint and its devices; it stays paused without them.

    Raises:
        IllegalMove: it is not paused any more.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    if job.state != JobState.PAUSED or job.desired != Desired.PAUSE:
        raise IllegalMove(_("Only a paused job can be continued."), state=job.state, verb="release")
    return transitions.request_room(job, Desired.RELEASE, message, reason=Reason.PAUSE_OVER)


def _request(job: Job, verb: str, desired: Desired, by: User | None, message: Message, *, reason: str = "") -> Job:
    """Write a request, if its button is enabled now. The agent of the job's node carries it out."""
    fresh = Job.objects.get(pk=job.pk)
    button = next(button for button in buttons.list_buttons(fresh) if button.verb == verb)
    if not button.allowed:
        raise IllegalMove(button.why, state=fresh.state, verb=verb)
    unchanged = Job.objects.filter(pk=fresh.pk, state=fresh.state, desired=fresh.desired)
    why = {"reason": reason, "message": message} if reason else {}
    if not unchanged.update(desired=desired, **why):
        raise transitions.StaleReport(_("%(job)s was moved by another user.") % {"job": fresh})
    transitions.note(fresh, f"{verb}_requested", message, by=by)
    scheduler_wakeup.notify()
    return _refreshed(job, Job.objects.get(pk=job.pk))


def _refreshed(job: Job, current: Job) -> Job:
    """The caller's own object with the columns as they are now."""
    for column in Job._meta.concrete_fields:
        setattr(job, column.attname, getattr(current, column.attname))
    return job
