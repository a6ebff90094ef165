"""Launching: starts an attempt on its node (row, run directory, process). Safe to repeat at any point."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet

from aiplatform.lib import after_commit, disk, wording
from aiplatform.lib.enqueue import enqueue, enqueue_each
from aiplatform.lib.errors import DomainError
from aiplatform.lib.registry import Registry, dotted_name
from workers.core import agent_wakeup, kinds, queues
from workers.core.kinds import Launch
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.runs import RunDir
from workers.core.states import Desired, Event, JobState, Reason
from workers.execution import earlier_outputs, handing_over, resuming, supervisors, tickets
from workers.execution.supervisors import SupervisorFailed
from workers.execution.time_limit import at_most
from workers.jobs import transitions
from workers.jobs.transitions import Move
from workers.supervisor import claims, records

log = logging.getLogger(__name__)

AT_ONCE = 8  # attempts of one message: a worker that is killed leaves so many to the agent
COMMAND = "command.json"  # what rank 0 of a gang was given, for the other ranks
PREPARE_LIMIT_S = 60.0  # a kind prepares within 2 s; what hangs must hold neither the cards nor who starts others
WAIT_FOR_CHILD_S = 1.0
#: What has to be on a machine before a rank begins there; each raises `kinds.NotYet` until it is.
ARRIVALS: Registry[Callable[[Attempt, Launch, Path], None]] = Registry("arrival", name=dotted_name)
#: Add to what a kind wants started, as variables for its programs; asked once for all ranks of an attempt.
ADDITIONS: Registry[Callable[[Launch, Attempt], Launch]] = Registry("addition to launches", name=dotted_name)
WAITS = ".waits"  # why, written where the kind says that the job cannot begin yet


class TookTooLong(DomainError, code="launch_took_too_long"): ...


def send(attempt: Attempt, leads: Mapping[int, Device]) -> None:
    """Nudge the worker of each rank's lead device; the agent finds the rows by itself otherwise."""
    for rank, lead in sorted(leads.items()):
        name = lead.node.name
        queue = queues.gpu(name, lead.index) if lead.kind == Device.Kind.GPU else queues.cpu(name)
        if len(leads) == 1:
            enqueue_each("workers.start_each", attempt.pk, queue=queue, at_most=AT_ONCE)
        else:
            enqueue("workers.start", queue=queue, attempt_id=attempt.pk, rank=rank)


def hand_over(attempt_id: int) -> None:
    """Let the machine of an attempt have what only this one can open, and start it there. Safe to run twice."""
    attempt = Attempt.objects.select_related("job").filter(pk=attempt_id, ended_at=None).first()
    if attempt is None or attempt.number != attempt.job.attempt_number:
        return
    held = by_rank(attempt).get(0, [])
    if held and handing_over.is_needed(attempt.job, held[0].node.name) and handing_over.write(attempt):
        send(attempt, {0: held[0].device})


def by_rank(attempt: Attempt) -> dict[int, list[Allocation]]:
    """Live allocations of an attempt by rank, each by device index."""
    ranks: dict[int, list[Allocation]] = {}
    for held in _live(attempt.allocations.all()):
        ranks.setdefault(held.rank, []).append(held)
    return ranks


def _live(allocations: QuerySet[Allocation]) -> QuerySet[Allocation]:
    live = allocations.filter(released_at=None).select_related("node", "device")
    return live.order_by("rank", "device__index", "pk")


def _attempts(**which: object) -> QuerySet[Attempt]:
    """Attempts to start, with what a start reads of them."""
    current = Attempt.objects.filter(ended_at=None, number=F("job__attempt_number"), **which)
    return current.select_related("job__cluster", "job__owner").prefetch_related("job__dependencies")


def start(attempt_id: int, rank: int = 0) -> None:
    """Start the supervisor of one rank of an attempt on this node, unless it was started before.

    A job that was stopped before it began ends here. Whatever fails before the program runs ends the
    attempt as failed, with the reason in words; so does what takes longer than `PREPARE_LIMIT_S`. Who fails it claims
    its run directory first, as a supervisor would: of the two only one can happen, whoever is killed on the way.
    Somebody else who is starting it already is left to it.
    """
    attempt = _attempts(pk=attempt_id).first()
    if attempt is None:
        return
    held = by_rank(attempt).get(rank, [])
    if not tickets.on_this_node(held):
        return
    agent_wakeup.notify(settings.NODE)
    with ExitStack() as locks:
        prepared = _prepare_rank(attempt, rank, held, locks)
        if prepared and prepared.wait():
            report_started(attempt, rank, prepared.home)


def start_each(attempt_ids: Sequence[int]) -> None:
    """Do what `start` does for several attempts of one machine each; their supervisors start side by side."""
    held: dict[int, list[Allocation]] = {}
    for allocation in _live(Allocation.objects.filter(attempt__in=attempt_ids)):
        held.setdefault(allocation.attempt_id, []).append(allocation)
    agent_wakeup.notify(settings.NODE)
    with after_commit.collected(), ExitStack() as locks:
        prepared = []
        for attempt in _attempts(pk__in=attempt_ids).order_by("pk"):
            allocations = held.get(attempt.pk, [])
            try:
                if tickets.on_this_node(allocations) and (rank := _prepare_rank(attempt, 0, allocations, locks)):
                    prepared.append(rank)
            except (OperationalError, InterfaceError):
                log.warning("database away, %s attempts are left to the agent", len(attempt_ids) - len(prepared))
                break
            except Exception:
                log.exception("job=%s attempt=%s not started, the agent tries again", attempt.job_id, attempt.number)
        _report_all_started([rank for rank in prepared if rank.wait()])


class _PreparedRank:
    """A rank with its ticket, and the request for its supervisor; without one there is a supervisor already."""

    def __init__(self, attempt: Attempt, home: Path, request: supervisors.StartRequest | None) -> None:
        self.attempt, self.home = attempt, home
        self._request = request

    def wait(self) -> bool:
        """Wait for its supervisor; whether there is one now."""
        return self._request is None or _has_begun(self.attempt, self.home, self._request)


def _prepare_rank(attempt: Attempt, rank: int, held: list[Allocation], locks: ExitStack) -> _PreparedRank | None:
    """Prepare a rank and ask for its supervisor; None where it is not to be, or cannot yet be, started here.

    Args:
        locks: keeps others from starting it until they are released.
    """
    run = RunDir.for_attempt(attempt.job_id, attempt.number)
    home = tickets.rank_dir(run, rank)
    home.mkdir(parents=True, exist_ok=True)
    if not locks.enter_context(_one_at_a_time(home)):
        return None
    if (home / records.SUPERVISOR).exists():
        return _PreparedRank(attempt, home, None)
    if rank and not (run.path / COMMAND).exists():
        return None  # the first part prepares yet; the agent comes again
    if attempt.job.desired in (Desired.STOP, Desired.FINISH):
        return None if _never_begun(attempt, home) else _PreparedRank(attempt, home, None)
    try:
        with at_most(PREPARE_LIMIT_S, _late()), _held_back(home) as has_started:
            if has_started:
                return _PreparedRank(attempt, home, None)
            goes_on = _prepare(attempt, rank, held, run, home)
    except kinds.NotYet as exc:
        _note_waiting(attempt, home / WAITS, str(exc))
        return None
    except Exception as exc:  # noqa: BLE001 - kinds may raise anything; the job must say what
        if disk.is_full(exc) and disk.has_no_room(home):
            log.warning("job=%s attempt=%s waits for room on the disk: %s", attempt.job_id, attempt.number, exc)
            return None
        return None if _failed(attempt, home, exc) else _PreparedRank(attempt, home, None)
    if not goes_on:
        return None
    request = supervisors.StartRequest(home)
    locks.callback(request.close)
    return _PreparedRank(attempt, home, request)


def _note_waiting(attempt: Attempt, marker: Path, why: str) -> None:
    """Note that the launch is repeated; the log has each reason once, as it is repeated every few seconds."""
    if not marker.exists() or marker.read_text() != why:
        log.info("job=%s attempt=%s waits: %s", attempt.job_id, attempt.number, why)
    marker.write_text(why)


def give_up(attempt: Attempt) -> None:
    """End an attempt that could not be started in time, so that its devices serve others."""
    home = RunDir.for_attempt(attempt.job_id, attempt.number).path
    home.mkdir(parents=True, exist_ok=True)
    _failed(attempt, home, _late())


def waits(home: Path) -> bool:
    """Whether a job could not begin a moment ago and is to be tried again, however long that takes."""
    try:
        return time.time() - (home / WAITS).stat().st_mtime < PREPARE_LIMIT_S
    except OSError:
        return False


def _late() -> TookTooLong:
    return TookTooLong(wording.message("job.launch_too_long", seconds=PREPARE_LIMIT_S))


def report_started(attempt: Attempt, rank: int, home: Path, patience_s: float = WAIT_FOR_CHILD_S) -> None:
    """Move the job to starting, and to running once the program is there."""
    try:
        runs = rank == 0 and _has_child(home)
        if attempt.job.state == JobState.ASSIGNED:
            event = Event.STARTED if runs else Event.LAUNCHED
            attempt.job = transitions.move(attempt.job_id, event, attempt=attempt.number)
        deadline = time.monotonic() + patience_s
        while rank == 0 and attempt.job.state == JobState.STARTING:
            if _has_child(home):
                attempt.job = transitions.move(attempt.job_id, Event.STARTED, attempt=attempt.number)
            elif time.monotonic() >= deadline or (home / records.EXIT).exists():
                return
            else:
                time.sleep(0.01)
    except DomainError as exc:  # the agent saw its start, or its end, before
        log.debug("job=%s attempt=%s moved by someone else: %s", attempt.job_id, attempt.number, exc)


def _report_all_started(started: Sequence[_PreparedRank]) -> None:
    """Move these jobs to running in rank transaction; those whose program is not there yet are reported one by one."""
    runs = {rank.attempt.job_id: rank for rank in started if _has_child(rank.home)}
    with transaction.atomic():
        locked = Job.objects.select_for_update().filter(pk__in=runs, state=JobState.ASSIGNED).order_by("pk")
        transitions.move_many([Move(job, Event.STARTED, attempt=runs.pop(job.pk).attempt.number) for job in locked])
    for rank in started:
        if rank.attempt.job_id in runs or not _has_child(rank.home):
            rank.attempt.job.refresh_from_db(fields=["state", "attempt_number"])
            report_started(rank.attempt, 0, rank.home)


def _has_child(home: Path) -> bool:
    """Whether the program of a run has begun."""
    return "child" in (records.read(home / records.SUPERVISOR) or {})


def _prepare(attempt: Attempt, rank: int, held: list[Allocation], run: RunDir, home: Path) -> bool:
    """Fill the run directory and write the ticket; whether the attempt was not given up meanwhile.

    Only the first part of a gang fills it, once; the others take over what it wrote down, so that no file changes
    while somebody runs it.
    """
    if rank == 0 and not (run.path / COMMAND).exists():
        resuming.hold(attempt, run)
        launch = kinds.get(attempt.job.kind).prepare(attempt.job, attempt, run)
        launch = replace(launch, env={**earlier_outputs.linked(attempt, run), **launch.env})
        for add in ADDITIONS:
            launch = add(launch, attempt)
        records.write(run.spec, attempt.job.spec)
        if attempt.job.nodes > 1:
            launch.save(run.path / COMMAND)
    else:
        launch = kinds.get(attempt.job.kind).further(attempt.job, Launch.load(run.path / COMMAND))
        attempt.refresh_from_db(fields=["checkpoint_in"])
    for arrive in ARRIVALS:
        arrive(attempt, launch, home)
    ticket = tickets.make(attempt, rank, held, launch)
    records.write(home / records.LAUNCH, ticket.to_json())
    (home / records.LAUNCH).chmod(0o600)  # it holds the job's environment
    if rank == 0:
        handing_over.forget(run)
    live = Attempt.objects.filter(pk=attempt.pk, ended_at=None)
    if rank:
        return live.exists()
    # for people; what holds stands in the ticket
    return bool(live.update(sandbox_tier=ticket.tier, image=ticket.container.get("image", "")))


def _has_begun(attempt: Attempt, home: Path, request: supervisors.StartRequest) -> bool:
    """Wait for the supervisor of a prepared run; whether there is one now.

    That stands in the run directory alone. Who started it may have been killed, or may be slow to answer, and says
    nothing then: the agent comes again.
    """
    why = None
    try:
        request.wait()
    except supervisors.NoAnswer:
        log.warning("job=%s attempt=%s no answer of its supervisor", attempt.job_id, attempt.number)
    except supervisors.NoRoom as exc:
        log.warning("job=%s attempt=%s waits for room on the disk: %s", attempt.job_id, attempt.number, exc)
    except SupervisorFailed as exc:
        why = exc
    if (home / records.SUPERVISOR).exists():
        return True
    return why is not None and not _failed(attempt, home, why)


def _failed(attempt: Attempt, home: Path, exc: Exception) -> bool:
    """End an attempt that cannot be started; False where its supervisor is there after all, which knows better."""
    error = str(exc) if isinstance(exc, SupervisorFailed) else f"{type(exc).__name__}: {exc}"
    if not _refused(attempt, home, error=error):
        return False
    if isinstance(exc, DomainError):
        message = wording.of_error(exc)
    else:
        log.error("job=%s attempt=%s not started", attempt.job_id, attempt.number, exc_info=exc)
        message = wording.message("job.launch_failed", error=error)
    try:
        transitions.move(
            attempt.job_id, Event.EXITED_BAD, attempt=attempt.number, reason=Reason.LAUNCH_FAILED, message=message
        )
    except DomainError as late:
        log.info("job=%s attempt=%s ended otherwise: %s", attempt.job_id, attempt.number, late)
    return True


def _never_begun(attempt: Attempt, home: Path) -> bool:
    """End an attempt that was stopped between its placement and its start; False where it did begin."""
    if not _refused(attempt, home, requested=str(attempt.job.desired)):
        return False
    try:
        reason = attempt.job.reason or Reason.OWNER
        job = transitions.move(attempt.job_id, Event.STOP_REQUESTED, attempt=attempt.number, reason=reason)
        transitions.move(job.pk, Event.EXITED_BAD, attempt=attempt.number, reason=reason)
    except DomainError as exc:
        log.info("job=%s attempt=%s ended otherwise: %s", attempt.job_id, attempt.number, exc)
    return True


def _refused(attempt: Attempt, home: Path, **why: str) -> bool:
    """Make sure that this run never begins; False where it did. A disk that takes no record takes no claim either."""
    try:
        refused = claims.refuse(home, job=attempt.job_id, attempt=attempt.number, **why)
    except OSError as exc:
        log.error("job=%s attempt=%s no record can be written: %s", attempt.job_id, attempt.number, exc)
        refused = not (home / records.SUPERVISOR).exists()
    if refused:
        handing_over.forget(RunDir.for_attempt(attempt.job_id, attempt.number))
    return refused


@contextmanager
def _held_back(home: Path) -> Iterator[bool]:
    """Yield whether this run has started; it cannot start before the end of the block."""
    lock = claims.hold_back(home)
    try:
        yield (home / records.SUPERVISOR).exists()
    finally:
        os.close(lock)


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[bool]:
    """Yield whether no other process starts this attempt: task and agent may both try, and neither waits."""
    with (home / ".launch").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
