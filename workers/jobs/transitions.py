"""The one writer of `Job.state` and `Attempt.state`. Every move is one transaction and one line of its event log.

`move` is for one job; `move_many` moves several in a few statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue_each
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers.core import agent_wakeup, live, scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Allocation, Attempt, Device, Job, JobEvent
from workers.core.states import COMPLETED, FINAL, LIVE, Desired, Event, IllegalMove, JobState, Reason, next_state

__all__ = ["IllegalMove", "Move", "StaleReport", "move", "move_many", "note"]

S, E = JobState, Event
K = TypeVar("K")
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


class StaleReport(DomainError, code="stale_report"):
    """An older attempt reports, or another caller moved the job first."""


@dataclass(frozen=True)
class Move:
    """One job and what happens to it, see `move`."""

    job: Job
    event: Event
    attempt: int | None = None
    reason: str = Reason.NONE
    message: Message = NOTHING
    exit_code: int | None = None


@dataclass(frozen=True)
class _Step:
    """A move that the table allows."""

    job: Job
    event: Event
    reached: JobState  # by the attempt
    was_live: bool
    columns: Mapping[str, Any]  # of the job
    event_message: Message  # in its event log
    reason: str
    message: Message  # of the attempt
    exit_code: int | None

    def apply(self) -> None:
        """Change the job in memory as its row."""
        for name, value in self.columns.items():
            setattr(self.job, name, value)


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
    step = _step(Move(job, event, attempt, reason, message, exit_code), now(), for_good=for_good)
    unchanged = Job.objects.filter(pk=job_id, state=job.state, attempt_number=job.attempt_number)
    if not unchanged.update(**step.columns):
        raise StaleReport(_("%(job)s was moved by another user.") % {"job": job})
    if locked:
        step.apply()
    else:
        job.refresh_from_db()
    _move_attempts([step])
    _log_events([step], by)
    return job


@transaction.atomic
def move_many(moves: Sequence[Move]) -> dict[int, DomainError]:
    """Apply several moves, each of another job, in a few statements; the others stand where some are refused.

    Args:
        moves: their jobs are locked by this transaction (`select_for_update`) and changed in place.

    Returns:
        For each job whose move was refused, by number, what `move` would raise.
    """
    steps, refused, moment = [], {}, now()
    for requested in moves:
        try:
            steps.append(_step(requested, moment))
        except DomainError as exc:
            refused[requested.job.pk] = exc
    for columns, alike in _alike(steps, lambda step: step.columns):
        Job.objects.filter(pk__in=[step.job.pk for step in alike]).update(**columns)
    for step in steps:
        step.apply()
    _move_attempts(steps)
    _log_events(steps)
    return refused


def _step(requested: Move, moment: datetime, *, for_good: bool = False) -> _Step:
    """Where a move leads.

    Raises:
        IllegalMove: the table has no way from the current state.
        StaleReport: an older attempt reports.
    """
    job, event, message = requested.job, requested.event, requested.message
    if requested.attempt is not None and requested.attempt != job.attempt_number:
        raise StaleReport(
            _("Attempt %(old)s has ended, attempt %(new)s is current.")
            % {"old": requested.attempt, "new": job.attempt_number}
        )
    reached = state = next_state(job.state, event)
    message = message or (wording.message("job.reason", reason=requested.reason) if requested.reason else NOTHING)
    event_message = message
    if (state in _UNDONE or (state == S.LOST and for_good)) and (earlier := _earlier_result(job)):
        state, why = JobState(earlier.state), message or wording.message(_MESSAGES[event])
        event_message = wording.message("job.result_kept", attempt=job.attempt_number, why=why)
    columns = {"state": state, **_columns(job, event, state, requested.reason, event_message, moment)}
    return _Step(
        job, event, reached, job.state in LIVE, columns, event_message, requested.reason, message, requested.exit_code
    )


def _earlier_result(job: Job) -> Attempt | None:
    """The newest earlier attempt that ended well; none for services, which start again when they fail."""
    if job.attempt_number < 1 or job.restart != Job.Restart.NEVER:
        return None
    return job.attempts.filter(state__in=COMPLETED).order_by("-number").first()


@transaction.atomic
def note(job: Job, event: str, message: Message, *, by: User | None = None) -> JobEvent:
    """Add a line to the event log without a transition ("Alice requested a pause")."""
    row = JobEvent.objects.create(
        job=job, attempt=job.attempt_number, event=event, state=job.state, at=now(), by=by, message=message
    )
    live.nudge(job.pk)
    if job.state in LIVE:  # whatever is requested of a job is noted
        agent_wakeup.request(job.pk)
    return row


def request_room(job: Job, desired: Desired, message: Message, **columns: Any) -> Job:
    """Request that a running job, as it was just read, leaves its devices in the way that `desired` states.

    Raises:
        StaleReport: somebody moved it first.
    """
    unchanged = Job.objects.filter(pk=job.pk, state=job.state, desired=job.desired, attempt_number=job.attempt_number)
    if not unchanged.update(desired=desired, message=message, **columns):
        raise StaleReport(_("%(job)s was moved by another user.") % {"job": job})
    note(job, "room_requested", message)
    return Job.objects.get(pk=job.pk)


def _columns(
    job: Job, event: Event, state: JobState, reason: str, message: Message, moment: datetime
) -> dict[str, Any]:
    """What changes on the job besides its state."""
    changes: dict[str, Any] = {"message": message, "reason": reason}
    if event is E.PLACED:
        changes |= {
            "attempt_number": job.attempt_number + 1, "progress": None, "eta_s": None, "phase": "",
            "phase_done": None, "phase_total": None, "phase_times": {}, "not_before": None,
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
            "phase": "", "phase_done": None, "phase_total": None,
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


def _move_attempts(steps: Sequence[_Step]) -> None:
    """Open the attempts of PLACED, carry other moves over to the live ones, and free what those held that ended."""
    placed = [step.job for step in steps if step.event is E.PLACED]
    if placed:
        Attempt.objects.bulk_create(
            Attempt(job=job, number=job.attempt_number, state=job.state, checkpoint_in=job.resume_from)
            for job in placed
        )
    moved = [step for step in steps if step.event is not E.PLACED and step.was_live]
    held = _held([step for step in moved if step.event is E.EVICTED or step.reached not in LIVE])
    freed = [row for row in held if row.evicted_at is None]  # where it is evicted others have its devices already
    moment = now()
    for (number, columns), alike in _alike(moved, lambda step: (step.job.attempt_number, _of_attempt(step, moment))):
        live = Attempt.objects.filter(job__in=[step.job.pk for step in alike], number=number, ended_at=None)
        live.update(**columns)
    _free_devices(freed)
    released = {step.job.pk for step in moved if step.reached not in LIVE}
    over = [row.pk for row in held if row.job in released]
    if over:
        Allocation.objects.filter(pk__in=over).update(released_at=moment)


def _of_attempt(step: _Step, moment: datetime) -> dict[str, Any]:
    """What changes on the attempt of a job that moved."""
    if step.reached in LIVE:
        # what was paused begins its idle time anew: the pause is not held against it
        since = {E.STARTED: "started_at", E.RESUMED: "busy_at", E.EVICTED: "evicted_at"}
        return {"state": step.reached} | ({since[step.event]: moment} if step.event in since else {})
    over = S.LOST if step.event is E.LOST else step.reached if step.reached in FINAL else S.STOPPED
    how = {"reason": step.reason, "message": step.message, "exit_code": step.exit_code}
    return {"state": over, **how, "ended_at": moment}


class _Held(NamedTuple):
    pk: int
    job: int
    device: int
    share: int
    evicted_at: datetime | None  # of its attempt


def _held(steps: Sequence[_Step]) -> list[_Held]:
    """Allocations of the current attempts of these jobs."""
    if not steps:
        return []
    numbers = {step.job.pk: step.job.attempt_number for step in steps}
    columns = ("attempt__number", "pk", "attempt__job_id", "device_id", "share", "attempt__evicted_at")
    rows = Allocation.objects.filter(attempt__job__in=numbers, released_at=None).values_list(*columns)
    return [_Held(*row) for number, *row in rows if number == numbers[row[1]]]


def _free_devices(rows: Iterable[_Held]) -> None:
    """Count these shares of devices as free."""
    shares: Counter[int] = Counter()
    for row in rows:
        shares[row.device] += row.share
    for device, share in sorted(shares.items()):  # in one order, so that two transactions never wait for each other
        Device.objects.filter(pk=device).update(used=F("used") - share)


def _log_events(steps: Sequence[_Step], by: User | None = None) -> None:
    """Write the event log, and tell those who act on it."""
    moment = now()
    JobEvent.objects.bulk_create(
        JobEvent(
            job=step.job, attempt=step.job.attempt_number, event=step.event, state=step.job.state, at=moment, by=by,
            message=step.event_message or wording.message(_MESSAGES[step.event]),
        )
        for step in steps
    )  # fmt: skip
    for step in steps:
        if step.job.state in FINAL:
            enqueue_each("workers.finish", step.job.pk)
    if any(
        step.job.state == S.QUEUED or step.event is E.EVICTED or (step.was_live and step.job.state in FINAL)
        for step in steps
    ):
        scheduler_wakeup.notify()
    live.nudge(*(step.job.pk for step in steps))


def _alike(steps: Iterable[_Step], key: Callable[[_Step], K]) -> list[tuple[K, list[_Step]]]:
    """Group steps with an equal key; there are few different ones, and not all of them can be hashed."""
    groups: list[tuple[K, list[_Step]]] = []
    for step in steps:
        wanted = key(step)
        alike = next((members for group_key, members in groups if group_key == wanted), None)
        if alike is None:
            groups.append((wanted, [step]))
        else:
            alike.append(step)
    return groups
