"""What an exit record means. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import Any

from django.utils.translation import gettext as _

from workers.states import Event, JobState, Reason

SUSPENDED_CODE = 75


@dataclass(frozen=True)
class Outcome:
    """The moves that lead from the job's state to its end, the last one with reason and sentence."""

    events: tuple[Event, ...]
    reason: str
    sentence: str
    exit_code: int | None


def judge(state: str, reason: str, record: dict[str, Any]) -> Outcome:
    """Say how a job in `state` ended.

    Args:
        reason: the `Reason` written with the wish to stop, if any.
        record: exit.json of the supervisor.
    """
    code, signal = record.get("code"), record.get("signal")
    shown = code if code is not None else _signal_number(signal)
    wish = record.get("wish", "run")
    if state == JobState.STOPPING or wish == "stop":
        asked = () if state == JobState.STOPPING else (Event.STOP_ASKED,)
        why = reason or Reason.OWNER
        return Outcome((*asked, Event.EXITED_BAD), why, str(Reason(why).label), shown)
    if record.get("error"):
        text = _("It could not be started: %(error)s") % {"error": record["error"]}
        return Outcome((Event.EXITED_BAD,), Reason.LAUNCH_FAILED, text, shown)
    if wish == "finish":
        asked = () if state == JobState.FINISHING else (Event.FINISH_ASKED,)
        if code == 0 or signal in {"SIGTERM", "SIGKILL"} or code == 143:
            return Outcome((*asked, Event.EXITED_EARLY), Reason.DONE, _("Finished early, the result is kept."), shown)
        return Outcome((*asked, Event.EXITED_BAD), Reason.USER_CODE, _bad(code, signal), shown)
    if code == SUSPENDED_CODE or (wish == "suspend" and code != 0):
        return Outcome((Event.SUSPENDED,), Reason.PREEMPTED, _("Left the devices and waits for its turn again."), shown)
    if code == 0:
        return Outcome((Event.EXITED_OK,), Reason.DONE, str(Reason.DONE.label), 0)
    if record.get("oom"):
        return Outcome((Event.EXITED_BAD,), Reason.OUT_OF_MEMORY, str(Reason.OUT_OF_MEMORY.label), shown)
    return Outcome((Event.EXITED_BAD,), Reason.USER_CODE, _bad(code, signal), shown)


def _bad(code: int | None, signal: str | None) -> str:
    if signal:
        return _("The program was ended by signal %(signal)s.") % {"signal": signal}
    return _("The program failed with exit code %(code)s.") % {"code": code}


def _signal_number(name: str | None) -> int | None:
    return -Signals[name].value if name else None
