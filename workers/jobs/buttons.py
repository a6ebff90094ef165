"""Buttons of a job: which ones are allowed now, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from workers.core import kinds
from workers.core.kinds import Capabilities, Way
from workers.core.models import Job
from workers.core.states import Desired, JobState

S = JobState


@dataclass(frozen=True)
class Button:
    """One act. `why` is empty where it is allowed; `asks` is the question before a dangerous one."""

    verb: str
    label: Any
    icon: str
    why: str = ""
    asks: str = ""

    @property
    def allowed(self) -> bool:
        return not self.why


LABELS = {
    "pause": (gettext_lazy("Pause"), "pause"),
    "continue": (gettext_lazy("Continue"), "play"),
    "suspend": (gettext_lazy("Suspend"), "arrow-down"),
    "finish": (gettext_lazy("Finish early"), "finish"),
    "stop": (gettext_lazy("Stop"), "stop"),
    "restore": (gettext_lazy("Restore"), "restore"),
}


def list_buttons(job: Job) -> list[Button]:
    """All buttons of a job in their usual order."""
    return _all(job, kinds.capabilities_of(job))


def _all(job: Job, can: Capabilities) -> list[Button]:
    buttons = []
    for verb, (label, icon) in LABELS.items():
        question = ""
        if verb == "stop":
            question = _("Stop %(job)s?") % {"job": job.name}
        elif verb == "suspend":
            question = _(
                "Suspend %(job)s? It saves a checkpoint, releases its resources and waits until you continue it."
            ) % {"job": job.name}
        elif verb == "finish":
            question = _("Finish %(job)s early and keep its result?") % {"job": job.name}
        buttons.append(Button(verb, label, icon, _WHY[verb](job, can), question))
    return buttons


def shown(job: Job) -> list[Button]:
    """Return the buttons of its page: pause or continue, whichever applies, and suspend for jobs that can.

    An ended job has none: what runs it again is in a menu of its own, see `again`.
    """
    if job.is_final:
        return []
    paused = job.state == S.PAUSED or job.desired == Desired.PAUSE
    can = kinds.capabilities_of(job)
    left_out = {"restore", "pause" if paused else "continue"}
    if not can.suspend:
        left_out.add("suspend")
    return [button for button in _all(job, can) if button.verb not in left_out]


ABOUT = {
    "continue": gettext_lazy("Continues where it was paused, on the devices it kept."),
    "restore": gettext_lazy("Continues from its newest checkpoint as a new attempt, with the same settings."),
}


def again(job: Job, user: User, *, may_control: bool) -> list[Way]:
    """The ways to run it again, those that are not possible now with the reason."""
    can = kinds.capabilities_of(job)
    descriptions = {**ABOUT, "restore": kinds.about_restore(job) or ABOUT["restore"]}
    own = [
        Way(button.verb, button.label, button.icon, descriptions[button.verb], verb=button.verb, why=button.why)
        for button in _all(job, can)
        if may_control and button.verb in ABOUT and (can.pause or can.restore)
    ]
    return own + kinds.again_of(job, user)


def force(job: Job, user: User) -> Button | None:
    """The button that kills a job at once, for those who may; None for others and where nothing runs."""
    if not job.is_live or not Job.objects.forcible_by(user).filter(pk=job.pk).exists():
        return None
    asks = _("Kill %(job)s immediately, without saving?") % {"job": job.name}
    return Button("force", _("Force stop"), "stop", "", asks)


def _makes_room() -> str:
    return _("The job is being preempted.")


def _off_its_cards() -> str:
    return _("The job has left its GPUs temporarily and continues automatically.")


def _why_not_pause(job: Job, can: Capabilities) -> str:
    if not can.pause:
        return _("This kind of job cannot be paused.")
    if job.desired == Desired.RELEASE:
        return _makes_room()
    if job.desired == Desired.EVICT:
        return _off_its_cards()
    if job.desired == Desired.PAUSE or job.state == S.PAUSED:
        return _("The job is already paused.")
    return "" if job.state == S.RUNNING else _("Only a running job can be paused.")


def _why_not_suspend(job: Job, can: Capabilities) -> str:
    if not can.suspend:
        return _("This job writes no checkpoints. Pause it instead: it keeps its GPUs.")
    if job.is_final:
        return _("The job has ended.")
    if job.desired == Desired.RELEASE or job.state == S.PREEMPTING:
        return _makes_room()
    if job.desired == Desired.EVICT:
        return _off_its_cards()
    if job.desired in _ENDING or job.state in {S.FINISHING, S.STOPPING}:
        return _("The job is already ending.")
    return "" if job.state in {S.RUNNING, S.PAUSED} else _("The job has no GPUs yet.")


def _why_not_continue(job: Job, can: Capabilities) -> str:
    if job.is_final:
        return _("The job has ended.")
    if job.desired == Desired.RELEASE:
        return _makes_room()
    if job.desired == Desired.EVICT:
        return _off_its_cards()
    paused = job.state == S.PAUSED or job.desired == Desired.PAUSE
    return "" if paused and job.desired not in _ENDING else _("Only a paused job can be continued.")


def _why_not_finish(job: Job, can: Capabilities) -> str:
    if not can.finish:
        return _("This kind of job has no intermediate result; stop it instead.")
    if job.is_final:
        return _("The job has ended.")
    if job.desired in _ENDING or job.state in {S.FINISHING, S.STOPPING}:
        return _("The job is already ending.")
    if job.desired == Desired.EVICT:
        return _("The job has left its GPUs temporarily. Finish it when it is back, or stop it now.")
    return "" if job.state in {S.STARTING, S.RUNNING, S.PAUSED} else _("The job has not started yet; stop it instead.")


def _why_not_stop(job: Job, can: Capabilities) -> str:
    if job.is_final:
        return _("The job has ended.")
    return _("The job is already stopping.") if job.desired == Desired.STOP or job.state == S.STOPPING else ""


def _why_not_restore(job: Job, can: Capabilities) -> str:
    if not job.is_final:
        return _("The job can be restored after it has ended.")
    if job.cluster.closed_at is not None:
        return _("The cluster of this job was deleted. Start a new job in another cluster.")
    return "" if can.restore else _("The job has no checkpoint.")


_ENDING = {Desired.STOP, Desired.FINISH}
_WHY = {
    "pause": _why_not_pause,
    "continue": _why_not_continue,
    "suspend": _why_not_suspend,
    "finish": _why_not_finish,
    "stop": _why_not_stop,
    "restore": _why_not_restore,
}
