"""What an exit record means: event, reason and a message for people. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core.states import Event, JobState, Reason

SUSPENDED_CODE = 75
FAULTS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"})  # whose words people know
_NOTHING = Message()


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended. `first` is a move to make before, when the request had not been written down yet."""

    event: Event
    reason: Reason
    message: Message
    exit_code: int | None = None
    first: Event | None = None


def judge(
    record: dict[str, Any],
    state: str,
    *,
    wanted_reason: str,
    can_suspend: bool,
    saved: bool = True,
    requested_message: Message = _NOTHING,
) -> Verdict:
    """Judge how an attempt in `state` ended, by its exit record.

    Args:
        wanted_reason: why somebody wanted it to end (`Job.reason`), if anybody did.
        can_suspend: whether exit code 75 means "checkpoint written, queue me again" for this job.
        saved: whether there is a checkpoint to go on from.
        said: what the job was told when the platform wanted it to end.
    """
    code, name = record.get("code"), record.get("signal")
    number = -int(signal.Signals[name]) if name else code
    how = how_it_ended(record)
    if record.get("error"):
        event = Event.EXITED_BAD
        return Verdict(event, Reason.LAUNCH_FAILED, wording.message("job.launch_failed", error=record["error"]))
    if record.get("limit") == "max_runtime":
        first = None if state == JobState.STOPPING else Event.STOP_REQUESTED
        return Verdict(Event.EXITED_BAD, Reason.MAX_RUNTIME, _why(Reason.MAX_RUNTIME), number, first)
    if record.get("limit") == "memory":
        limit, held = record.get("memory_limit_bytes", 0), record.get("held_bytes", 0)
        message = wording.message("job.over_memory", limit_mib=limit / (1 << 20), held_mib=held / (1 << 20))
        return Verdict(Event.EXITED_BAD, Reason.OUT_OF_MEMORY, message, number)
    if record.get("limit") == "disk":
        first = Event.STOP_REQUESTED if state == JobState.PREEMPTING else None  # it is not queued again
        return Verdict(Event.EXITED_BAD, Reason.DISK_LIMIT, _over_disk(record), number, first)
    if record.get("limit") == "stranded" and state not in (JobState.STOPPING, JobState.FINISHING):
        return Verdict(Event.SUSPENDED, Reason.EVICTED, _stranded(record, saved=saved), number)
    if state == JobState.STOPPING or record.get("requested") == "stop":
        first = None if state == JobState.STOPPING else Event.STOP_REQUESTED
        reason = Reason(wanted_reason) if wanted_reason in Reason.values and wanted_reason else Reason.OWNER
        return Verdict(Event.EXITED_BAD, reason, requested_message or _why(reason), number, first)
    if state == JobState.FINISHING or record.get("requested") == "finish":
        first = None if state == JobState.FINISHING else Event.FINISH_REQUESTED
        ended_by_us = name in {"SIGTERM", "SIGKILL"} or code in {0, SUSPENDED_CODE, 143, 137}
        if ended_by_us and wanted_reason == Reason.PRUNED:
            return Verdict(Event.EXITED_EARLY, Reason.PRUNED, requested_message or _why(Reason.PRUNED), number, first)
        if ended_by_us:
            message = wording.message("job.finished_early")
            return Verdict(Event.EXITED_EARLY, Reason.DONE, message, number, first)
        return Verdict(Event.EXITED_BAD, Reason.USER_CODE, how, number, first)
    if state == JobState.PREEMPTING or record.get("requested") == "suspend" or record.get("node_down"):
        if code == 0 and not record.get("termed"):  # after our TERM a 0 says nothing: it may have ended half done
            return Verdict(Event.EXITED_OK, Reason.DONE, _why(Reason.DONE), number)
        if wanted_reason in (Reason.SUSPENDED, Reason.PAUSE_OVER):
            message = wording.message("job.gave_back" if saved else "job.gave_back_unsaved")
            return Verdict(Event.SUSPENDED, Reason(wanted_reason), message, number)
        return Verdict(Event.SUSPENDED, Reason.PREEMPTED, _made_room(record, saved=saved), number)
    if code == 0:
        return Verdict(Event.EXITED_OK, Reason.DONE, _why(Reason.DONE), 0)
    if code == SUSPENDED_CODE and can_suspend:
        return Verdict(Event.SUSPENDED, Reason.NONE, wording.message("job.suspended"), number)
    return Verdict(Event.EXITED_BAD, Reason.OUT_OF_MEMORY if record.get("oom") else Reason.USER_CODE, how, number)


def _over_disk(record: dict[str, Any]) -> Message:
    limit, used = record.get("disk_limit_bytes") or 0, record.get("disk_bytes") or 0
    return wording.message("job.over_disk", limit_bytes=limit, used_bytes=max(used, limit))


def _why(reason: Reason) -> Message:
    return wording.message("job.reason", reason=reason)


def _made_room(record: dict[str, Any], *, saved: bool) -> Message:
    code = "job.left_late" if record.get("killed") else "job.made_room"
    return wording.message(code if saved else f"{code}_unsaved")


def _stranded(record: dict[str, Any], *, saved: bool) -> Message:
    return wording.message("job.stranded" if saved else "job.stranded_unsaved", why=record.get("stranded", ""))


def how_it_ended(record: dict[str, Any]) -> Message:
    """Exit code or signal, as a message; of a program that failed, that the disk was full meanwhile."""
    how = _end(record)
    failed = record.get("code") not in (0, SUSPENDED_CODE)
    return wording.message("job.disk_full", how=how) if failed and record.get("disk_full") else how


def _end(record: dict[str, Any]) -> Message:
    if record.get("limit") == "disk":
        return _over_disk(record)
    if record.get("oom"):
        return wording.message("job.machine_out_of_memory")
    name = record.get("signal")
    if name:
        return wording.message("job.fault" if name in FAULTS else "job.signal", signal=name)
    if record.get("code") == 0:
        return wording.message("job.exited")
    return wording.message("job.exit_code", code=record.get("code"))
