"""What an exit record means: event, reason and a sentence for people. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib import units
from workers.states import Event, JobState, Reason

SUSPENDED_CODE = 75
_SIGNAL_WORDS = {
    "SIGSEGV": _("a segmentation fault"),
    "SIGABRT": _("an abort"),
    "SIGBUS": _("a bus error"),
    "SIGFPE": _("an arithmetic fault"),
    "SIGILL": _("an illegal instruction"),
}


@dataclass(frozen=True)
class Verdict:
    """How an attempt ended. `first` is a move to make before, when the request had not been written down yet."""

    event: Event
    reason: Reason
    sentence: str
    exit_code: int | None = None
    first: Event | None = None


def judge(
    record: dict[str, Any], state: str, *, wanted_reason: str, can_suspend: bool, saved: bool = True, said: str = ""
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
        return Verdict(event, Reason.LAUNCH_FAILED, _("It could not be started: %(e)s") % {"e": record["error"]})
    if record.get("limit") == "max_runtime":
        first = None if state == JobState.STOPPING else Event.STOP_REQUESTED
        return Verdict(Event.EXITED_BAD, Reason.MAX_RUNTIME, str(Reason.MAX_RUNTIME.label), number, first)
    if record.get("limit") == "memory":
        facts = {"limit": _gib(record.get("memory_limit_bytes", 0)), "held": _gib(record.get("held_bytes", 0))}
        sentence = _("Memory limit %(limit)s exceeded: the program held %(held)s. Ask for more memory.") % facts
        return Verdict(Event.EXITED_BAD, Reason.OUT_OF_MEMORY, sentence, number)
    if record.get("limit") == "stranded" and state not in (JobState.STOPPING, JobState.FINISHING):
        return Verdict(Event.SUSPENDED, Reason.EVICTED, _stranded(record, saved=saved), number)
    if state == JobState.STOPPING or record.get("requested") == "stop":
        first = None if state == JobState.STOPPING else Event.STOP_REQUESTED
        reason = Reason(wanted_reason) if wanted_reason in Reason.values and wanted_reason else Reason.OWNER
        return Verdict(Event.EXITED_BAD, reason, said or str(reason.label), number, first)
    if state == JobState.FINISHING or record.get("requested") == "finish":
        first = None if state == JobState.FINISHING else Event.FINISH_REQUESTED
        ended_by_us = name in {"SIGTERM", "SIGKILL"} or code in {0, SUSPENDED_CODE, 143, 137}
        if ended_by_us:
            sentence = _("Finished early, the result is kept.")
            return Verdict(Event.EXITED_EARLY, Reason.DONE, sentence, number, first)
        return Verdict(Event.EXITED_BAD, Reason.USER_CODE, how, number, first)
    if state == JobState.PREEMPTING or record.get("requested") == "suspend" or record.get("node_down"):
        if code == 0 and not record.get("termed"):  # after our TERM a 0 says nothing: it may have ended half done
            return Verdict(Event.EXITED_OK, Reason.DONE, str(Reason.DONE.label), number)
        return Verdict(Event.SUSPENDED, Reason.PREEMPTED, _made_room(record, saved=saved), number)
    if code == 0:
        return Verdict(Event.EXITED_OK, Reason.DONE, str(Reason.DONE.label), 0)
    if code == SUSPENDED_CODE and can_suspend:
        return Verdict(Event.SUSPENDED, Reason.NONE, _("Left a checkpoint and waits for devices again."), number)
    return Verdict(Event.EXITED_BAD, Reason.OUT_OF_MEMORY if record.get("oom") else Reason.USER_CODE, how, number)


def _gib(size: int) -> str:
    return units.memory(round(size / (1 << 20)))


def _made_room(record: dict[str, Any], *, saved: bool) -> str:
    if record.get("killed"):
        if saved:
            return _("Did not leave in time and was ended; it goes on from its newest checkpoint.")
        return _("Did not leave in time and was ended; it starts over, as it left no checkpoint.")
    if saved:
        return _("Made room; it goes on from its checkpoint.")
    return _("Made room; it starts over, as it left no checkpoint.")


def _stranded(record: dict[str, Any], *, saved: bool) -> str:
    facts = {"why": record.get("stranded", "")}
    if saved:
        return _("It could not be brought back onto its cards (%(why)s). It goes on from its checkpoint.") % facts
    return _("It could not be brought back onto its cards (%(why)s). It starts over.") % facts


def how_it_ended(record: dict[str, Any]) -> str:
    """One sentence: exit code or signal, in words."""
    if record.get("oom"):
        return _("The machine ran out of memory and ended the program. Ask for less, or for a larger machine.")
    name = record.get("signal")
    if name:
        words = _SIGNAL_WORDS.get(name)
        if words:
            return _("The program was ended by %(signal)s (%(words)s).") % {"signal": name, "words": words}
        return _("The program was ended by signal %(signal)s.") % {"signal": name}
    if record.get("code") == 0:
        return _("The program ended by itself.")
    return _("The program ended with exit code %(code)s. Its log says more.") % {"code": record.get("code")}
