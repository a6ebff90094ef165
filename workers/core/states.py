"""States of a job and the transitions between them, as one table. No database, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.errors import DomainError


class JobState(TextChoices):
    QUEUED = "queued", _("Queued")
    ASSIGNED = "assigned", _("Assigned")
    STARTING = "starting", _("Starting")
    RUNNING = "running", _("Running")
    PAUSED = "paused", _("Paused")
    STOPPING = "stopping", _("Stopping")
    FINISHING = "finishing", _("Finishing")
    PREEMPTING = "preempting", _("Preempting")
    SUCCEEDED = "succeeded", _("Completed")
    FINISHED_EARLY = "finished_early", _("Finished early")
    FAILED = "failed", _("Failed")
    STOPPED = "stopped", _("Stopped")
    LOST = "lost", _("Lost")


class JobPhase(TextChoices):
    """The phase that a running program reports, in the order in which phases run; a program need not report any."""

    NONE = "", ""
    LOADING = "loading", _("Loading the model")
    PACKING = "packing", _("Preparing data")
    MASKS = "masks", _("Preparing masks")
    LEARNING = "learning", _("Training")
    CONVERTING = "converting", _("Converting")
    CALIBRATING = "calibrating", _("Calibrating")
    SEARCHING = "searching", _("Finding sensitive layers")
    SCORING = "scoring", _("Evaluating")
    ALTERED = "altered", _("Evaluating altered images")
    COMPUTING = "computing", _("Computing metrics")
    PREDICTING = "predicting", _("Predicting")
    MEASURING = "measuring", _("Measuring speed")
    EXPORTING = "exporting", _("Exporting the model")


#: Phases before the main work: their share says nothing about how far a job is.
PREPARATION = frozenset({JobPhase.LOADING, JobPhase.PACKING, JobPhase.MASKS})


class Desired(TextChoices):
    """What people (or the scheduler) want of a job; never what happened."""

    RUN = "run", _("Run")
    PAUSE = "pause", _("Pause")
    STOP = "stop", _("Stop")
    FINISH = "finish", _("Finish early")
    RELEASE = "release", _("Preempt")
    EVICT = "evict", _("Leave the GPUs temporarily")


class Event(StrEnum):
    PLACED = "placed"  # the scheduler chose node and devices
    LAUNCHED = "launched"  # a supervisor process exists
    STARTED = "started"  # the user's process runs
    PAUSED = "paused"
    RESUMED = "resumed"
    EVICTED = "evicted"  # its card memory is on the host, its cards serve others
    STOP_REQUESTED = "stop_requested"
    FINISH_REQUESTED = "finish_requested"
    RELEASE_REQUESTED = "release_requested"
    EXITED_OK = "exited_ok"
    EXITED_BAD = "exited_bad"
    EXITED_EARLY = "exited_early"  # ended on request to finish, with a result
    SUSPENDED = "suspended"  # left a checkpoint and the card
    LOST = "lost"  # node silent or supervisor gone
    REQUEUED = "requeued"
    RESTORED = "restored"  # a person asked for a new attempt


class Reason(TextChoices):
    """Why an attempt ended, apart from how."""

    NONE = "", ""
    DONE = "done", _("The program exited by itself")
    USER_CODE = "user_code", _("The program failed")
    OUT_OF_MEMORY = "out_of_memory", _("The program ran out of memory")
    MAX_RUNTIME = "max_runtime", _("The maximum run time was reached")
    DISK_LIMIT = "disk_limit", _("The disk limit was exceeded")
    NODE_LOST = "node_lost", _("The node stopped responding")
    DEVICE_FAILED = "device_failed", _("A GPU of the job failed")
    SUPERVISOR_LOST = "supervisor_lost", _("The supervisor process of the job was killed")
    LAUNCH_FAILED = "launch_failed", _("The job could not be started")
    PREEMPTED = "preempted", _("Preempted by more important jobs")
    EVICTED = "evicted", _("Temporarily preempted by more important jobs")
    GANG_PARTNER = "gang_partner", _("Another rank of the job ended")
    IDLE = "idle", _("The job left its devices unused")
    PAUSE_OVER = "pause_over", _("The job was paused for too long")
    SUSPENDED = "suspended", _("The job released its devices, to continue later")
    DEPENDENCY = "dependency", _("A dependency did not complete")
    REFUSED = "refused", _("The start was rejected")
    PRUNED = "pruned", _("Other trials of its study are better")
    OWNER = "owner", _("The owner ended the job")
    OPERATOR = "operator", _("Stopped by an administrator")


S, E = JobState, Event
_LIVE = (S.ASSIGNED, S.STARTING, S.RUNNING, S.PAUSED, S.STOPPING, S.FINISHING, S.PREEMPTING)


def _table() -> dict[tuple[JobState, Event], JobState]:
    table: dict[tuple[JobState, Event], JobState] = {
        (S.QUEUED, E.PLACED): S.ASSIGNED,
        (S.QUEUED, E.STOP_REQUESTED): S.STOPPED,
        (S.QUEUED, E.FINISH_REQUESTED): S.STOPPED,
        (S.QUEUED, E.LOST): S.LOST,  # the platform was restored: it may have run since
        (S.ASSIGNED, E.LAUNCHED): S.STARTING,
        (S.ASSIGNED, E.REQUEUED): S.QUEUED,
        (S.STARTING, E.STARTED): S.RUNNING,
        (S.RUNNING, E.PAUSED): S.PAUSED,
        (S.RUNNING, E.EVICTED): S.PAUSED,
        (S.PAUSED, E.RESUMED): S.RUNNING,
        (S.FINISHING, E.EXITED_EARLY): S.FINISHED_EARLY,
        (S.FINISHING, E.EXITED_OK): S.FINISHED_EARLY,
        (S.PREEMPTING, E.SUSPENDED): S.QUEUED,
        (S.PREEMPTING, E.EXITED_BAD): S.QUEUED,
        (S.PREEMPTING, E.EXITED_OK): S.SUCCEEDED,
        (S.STOPPING, E.EXITED_OK): S.STOPPED,
        (S.STOPPING, E.EXITED_BAD): S.STOPPED,
        (S.STOPPING, E.EXITED_EARLY): S.STOPPED,
        (S.STOPPING, E.SUSPENDED): S.STOPPED,
        (S.STOPPING, E.LOST): S.STOPPED,
    }
    for state in (S.ASSIGNED, S.STARTING, S.RUNNING, S.PAUSED, S.FINISHING, S.PREEMPTING):
        table[state, E.STOP_REQUESTED] = S.STOPPING
        table[state, E.LOST] = S.LOST
    for state in (S.STARTING, S.RUNNING, S.PAUSED):
        table[state, E.FINISH_REQUESTED] = S.FINISHING
        table[state, E.RELEASE_REQUESTED] = S.PREEMPTING
        table[state, E.EXITED_OK] = S.SUCCEEDED
        table[state, E.EXITED_BAD] = S.FAILED
        table[state, E.SUSPENDED] = S.QUEUED
    table[S.ASSIGNED, E.EXITED_BAD] = S.FAILED
    table[S.ASSIGNED, E.STARTED] = S.RUNNING
    table[S.FINISHING, E.EXITED_BAD] = S.FAILED
    for state in (S.SUCCEEDED, S.FINISHED_EARLY, S.FAILED, S.STOPPED, S.LOST):
        table[state, E.RESTORED] = S.QUEUED
    table[S.LOST, E.REQUEUED] = S.QUEUED
    table[S.FAILED, E.REQUEUED] = S.QUEUED  # restart policy of a service
    return table


TRANSITIONS: Mapping[tuple[JobState, Event], JobState] = _table()
LIVE = frozenset(_LIVE)
FINAL = frozenset({S.SUCCEEDED, S.FINISHED_EARLY, S.FAILED, S.STOPPED, S.LOST})
WAITS_FOR_OWNER = frozenset({Reason.IDLE, Reason.PAUSE_OVER, Reason.SUSPENDED})
"""What leaves its devices for one of these goes on when its owner continues it."""
COMPLETED = frozenset({S.SUCCEEDED, S.FINISHED_EARLY})
#: Filter words of lists → states; several states that people see as one.
GROUPS: Mapping[str, frozenset[JobState]] = {
    "waiting": frozenset({S.QUEUED, S.ASSIGNED, S.STARTING}),
    "running": LIVE - {S.ASSIGNED, S.STARTING, S.PAUSED},
    "paused": frozenset({S.PAUSED}),
    "completed": COMPLETED,
    "failed": frozenset({S.FAILED, S.LOST}),
    "stopped": frozenset({S.STOPPED}),
}


#: Labels of the groups.
GROUP_LABELS: Mapping[str, Any] = {
    "waiting": _("Waiting"),
    "running": _("Running"),
    "paused": _("Paused"),
    "completed": _("Completed"),
    "failed": _("Failed"),
    "stopped": _("Stopped"),
}


class IllegalMove(DomainError, code="illegal_move"): ...


def next_state(state: str, event: Event) -> JobState:
    """Return where `event` leads from `state`; raise IllegalMove if nowhere."""
    try:
        return TRANSITIONS[JobState(state), event]
    except KeyError:
        raise IllegalMove(
            _("A job in state “%(state)s” does not support this action.") % {"state": JobState(state).label},
            state=state,
            event=str(event),
        ) from None
