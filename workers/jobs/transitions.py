"""The one writer of `Job.state` and `Attempt.state`. Every move is one transaction and one line of its event log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers import live, scheduler_wakeup
from workers.clock import now
from workers.models import Allocation, Attempt, Device, Job, JobEvent
from workers.states import COMPLETED, FINAL, LIVE, Desired, Event, IllegalMove, JobState, Reason, next_state

__all__ = ["IllegalMove", "StaleReport", "move", "note"]

S, E = JobState, Event
NOTHING = Message()
_NEW_PLACE = frozenset({E.RESTORED})  # goes to the end of the queue; a preempted or lost job keeps its place
_MESSAGES = {  # what the event log says where neither message nor reason is given
    E.PLACED: "job.assigned",
    E.LAUNCHED: "job.launched",
    E.STARTED: "job.started",
    E.PAUSED: "job.paused",
    E.RESUMED: "job.continued",
    E.EVICTED: "job.evicted",
    E.STOP_REQUESTED: "job.stopping",
    E.FINISH_REQUESTED: "job.finishing",
    E.RELEASE_REQUESTED: "job.making_room",
    E.EXITED_OK: "job.exited",
    E.EXITED_BAD: "job.failed",
    E.EXITED_EARLY: "job.finished_early",
    E.SUSPENDED: "job.suspended",
    E.LOST: "job.lost",
    E.REQUEUED: "job.requeued",
    E.RESTORED: "job.restored",
}


_UNDONE = frozenset({S.FAILED, S.STOPPED})  # where a restored job had a result before, that stands


class StaleReport(DomainError):
    """An older attempt reports, or another caller moved the job first."""

    code = "stale_report"


@transaction.atomic
def move(
    job_id: int,
    event: Event,
    *,
    attempt: int | None = None,
    reason: str = Reason.NONE,
    message: Message = NOTHING,
    by: User | None = None,
    exit_code: int | None = None,
    locked: Job | None = None,
    for_good: bool = False,
) -> Job:
    """Apply `event` to the job exactly once, to its live attempt with it, and add it to the event log.

    Compare-and-set instead of a lock, so it means the same on SQLite and PostgreSQL: of two callers that
    saw the same state, one wins. PLACED opens the next attempt; whatever ends an attempt gives its devices
    and ports back in the same transaction. A job that completed in an earlier attempt completes again where a
    later one fails, is stopped, or is lost for good: that result stands until there is a better one.

    Args:
        attempt: the attempt the reporter belongs to; None when a person or the scheduler decides.
        reason: a `Reason`; why the attempt ended.
        message: what people are told; by default the reason.
        exit_code: of the user's program; negative for a signal.
        locked: the job as this transaction holds it locked (`select_for_update`), so that it is not read again.
        for_good: a lost job is not queued again.

    Raises:
        IllegalMove: the table has no way from the current state.
        StaleReport: an older attempt reports, or another caller moved it first.
    """
    job = locked or Job.objects.get(pk=job_id)
    if attempt is not None and attempt != job.attempt_number:
        raise StaleReport(
            _("Attempt %(old)s is over, %(new)s is current.") % {"old": attempt, "new": job.attempt_number}
        )
    reached = state = next_state(job.state, event)
    message = message or (wording.message("job.reason", reason=reason) if reason else NOTHING)
    told = message
    if (state in _UNDONE or (state == S.LOST and for_good)) and (earlier := _earlier_result(job)):
        state, why = JobState(earlier.state), message or wording.message(_MESSAGES[event])
        told = wording.message("job.result_kept", attempt=job.attempt_number, why=why)
    seen = Job.objects.filter(pk=job_id, state=job.state, attempt_number=job.attempt_number)
    columns = {"state": state, **_columns(job, event, state, reason, told)}
    if not seen.update(**columns):
        raise StaleReport(_("%(job)s was moved by someone else.") % {"job": job})
    was_live = job.state in LIVE
    if locked:
        for name, value in columns.items():
            setattr(job, name, value)
    else:
        job.refresh_from_db()
    if event is E.PLACED:
        Attempt.objects.create(job=job, number=job.attempt_number, state=state, checkpoint_in=job.resume_from)
    elif was_live:
        _move_attempt(job, event, reached, reason, message, exit_code)
    JobEvent.objects.create(
        job=job,
        attempt=job.attempt_number,
        event=event,
        state=state,
        at=now(),
        by=by,
        message=told or wording.message(_MESSAGES[event]),
    )
    if state in FINAL:
        enqueue("workers.finish", job_id=job_id)
    if state == S.QUEUED or event is E.EVICTED or (was_live and state in FINAL):
        scheduler_wakeup.notify()
    live.nudge(job_id)
    return job


def _earlier_result(job: Job) -> Attempt | None:
    """The newest earlier attempt that ended well; none for services, which start again when they fail."""
    if job.attempt_number < 1 or job.restart != Job.Restart.NEVER:
        return None
    return job.attempts.filter(state__in=COMPLETED).order_by("-number").first()


@transaction.atomic
def note(job: Job, event: str, message: Message, *, by: User | None = None) -> JobEvent:
    """Add a line to the event log without moving the job ("Alice asked to pause")."""
    row = JobEvent.objects.create(
        job=job, attempt=job.attempt_number, event=event, state=job.state, at=now(), by=by, message=message
    )
    live.nudge(job.pk)
    return row


def request_room(job: Job, desired: Desired, message: Message, **columns: Any) -> Job:
    """Ask a running job, as it was just read, to leave its cards in the way `desired` says.

    Raises:
        StaleReport: somebody moved it first.
    """
    seen = Job.objects.filter(pk=job.pk, state=job.state, desired=job.desired, attempt_number=job.attempt_number)
    if not seen.update(desired=desired, message=message, **columns):
        raise StaleReport(_("%(job)s was moved by someone else.") % {"job": job})
    note(job, "room_requested", message)
    return Job.objects.get(pk=job.pk)


def _columns(job: Job, event: Event, state: JobState, reason: str, message: Message) -> dict[str, Any]:
    """What changes on the job besides its state."""
    moment = now()
    changes: dict[str, Any] = {"message": message, "reason": reason}
    if event is E.PLACED:
        changes |= {
            "attempt_number": job.attempt_number + 1, "progress": None, "eta_s": None, "phase": "",
            "not_before": None,
            "forced_at": None, "wait_code": "", "wait_args": {}, "position": None, "eta": None,
        }  # fmt: skip
    if event is E.STOP_REQUESTED and state == S.STOPPING:
        changes["desired"] = Desired.STOP  # else the agent would let it run on
    if event is E.EVICTED:
        changes["makes_room_for"] = None
    if event is E.STARTED and job.started_at is None:
        changes["started_at"] = moment
    if state in FINAL:
        changes |= {
            "ended_at": moment, "wait_code": "", "wait_args": {}, "position": None, "eta": None, "makes_room_for": None,
            "phase": "",
        }  # fmt: skip
        if state in COMPLETED:
            changes |= {"progress": 1.0, "eta_s": 0.0}
    elif state == S.QUEUED:
        changes |= {
            "ended_at": None, "desired": Desired.RUN, "makes_room_for": None, "wait_code": "new", "wait_args": {},
        }  # fmt: skip
        if event in _NEW_PLACE:
            changes |= {"queued_at": moment, "retried": 0, "not_before": None}
    return changes


def _move_attempt(
    job: Job, event: Event, state: JobState, reason: str, message: Message, exit_code: int | None
) -> None:
    """Carry the move over to the live attempt; end it and free what it held where the job left it."""
    attempt = Attempt.objects.filter(job=job, number=job.attempt_number, ended_at=None)
    moment = now()
    if state in LIVE:
        # what was paused begins its idle time anew: the pause is not held against it
        since = {E.STARTED: {"started_at": moment}, E.RESUMED: {"busy_at": moment}}.get(event, {})
        if event is E.EVICTED and attempt.filter(evicted_at=None).update(evicted_at=moment):
            _free_devices(_held(job).values_list("device_id", "share"))
        attempt.update(state=state, **since)
        return
    held = list(_held(job).values_list("pk", "device_id", "share", "attempt__evicted_at"))
    # where it is evicted others have its devices already
    _free_devices((device, share) for _pk, device, share, evicted_at in held if evicted_at is None)
    over = S.LOST if event is E.LOST else state if state in FINAL else S.STOPPED
    attempt.update(state=over, reason=reason, message=message, exit_code=exit_code, ended_at=moment)
    Allocation.objects.filter(pk__in=[pk for pk, *_about in held]).update(released_at=moment)


def _held(job: Job) -> QuerySet[Allocation]:
    return Allocation.objects.filter(attempt__job=job, attempt__number=job.attempt_number, released_at=None)


def _free_devices(shares: Iterable[tuple[int, int]]) -> None:
    """Count these shares of devices as free."""
    for device, share in shares:
        Device.objects.filter(pk=device).update(used=F("used") - share)
