"""The end of a trial: the only lines that close one, for trials.py and for services that stop."""

from __future__ import annotations

from django.utils.timezone import now

from aiplatform.lib.wording import Message
from inference.serving.models import ServiceTrial
from workers.core.models import Job


def close(trial: ServiceTrial, outcome: str, message: Message | None = None) -> bool:
    """Close a trial if it is open; whether it was. Its server is left to the caller."""
    values = {"outcome": outcome, "message": message or Message(), "ended_at": now()}
    if not ServiceTrial.objects.filter(pk=trial.pk, outcome="").update(**values):
        return False
    for name, value in values.items():
        setattr(trial, name, value)
    return True


def close_of(service_id: int) -> list[Job]:
    """Close what a service tries, because it stops or goes; its servers, to be ended."""
    rows = ServiceTrial.objects.filter(service=service_id, outcome="").select_related("job")
    return [trial.job for trial in rows if close(trial, ServiceTrial.Outcome.ROLLED_BACK) and trial.job is not None]
