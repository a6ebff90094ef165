"""Pause, continue, suspend, finish and stop trainings, with the training's own rules about who may."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import NotFound
from training.runs.models import TrainingJob
from workers.jobs import actions as queue
from workers.jobs import buttons

CONTROL_COMMANDS = {
    "pause": queue.pause,
    "continue": queue.resume,
    "suspend": queue.suspend,
    "finish": queue.finish,
    "stop": queue.stop,
}


def legal(training: TrainingJob) -> list[str]:
    """List the verbs that make sense now, for the API."""
    return [button.verb for button in buttons.list_buttons(training.job) if button.allowed]


def steer(training: TrainingJob, verb: str, *, by: User) -> TrainingJob:
    """Send the control command of a button; the job's state follows by itself.

    Raises:
        IllegalMove: the button makes no sense at the moment; the sentence says why.
    """
    if verb not in CONTROL_COMMANDS:
        raise NotFound(_("Unknown action."))
    CONTROL_COMMANDS[verb](training.job, by=by)
    training.job.refresh_from_db()
    return training
