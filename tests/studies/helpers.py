"""Studies for tests: made by the product's own service; their jobs end as a test says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.timezone import now

from accounts.models import User
from tests.factories import curves
from training.studies import creating
from training.studies.creating import StudyRequest
from training.studies.limits import Limits
from training.studies.models import Study, Trial
from workers.core.models import Attempt, Job
from workers.core.states import Event, Reason
from workers.jobs import transitions

QUADRATIC = "python -c 'import json'"


def study(user: User, *, name: str = "hunt", **fields: Any) -> Study:
    """A study of a command line that runs nowhere."""
    limits = {key: fields.pop(key) for key in list(fields) if key in vars(Limits())}
    given: dict[str, Any] = {
        "training": {"command": QUADRATIC, "gpus_per_node": 0, "cpus": 1},
        "space": ["x = -5 .. 5.0"],
        "objectives": [{"key": "loss", "direction": "minimize"}],
        "seed": 1,
    }
    return creating.create(user=user, request=StudyRequest(name=name, **given | fields, limits=Limits(**limits)))


def run(trial: Trial) -> Attempt:
    """Its job runs."""
    job = Job.objects.get(pk=trial.training.job_id)
    transitions.move(job.pk, Event.PLACED)
    transitions.move(job.pk, Event.LAUNCHED)
    transitions.move(job.pk, Event.STARTED)
    Attempt.objects.filter(job=job, ended_at=None).update(started_at=now())
    return Attempt.objects.get(job=job, ended_at=None)


def report(attempt: Attempt, values: Sequence[float], key: str = "loss", *, first: int = 1) -> None:
    curves.report(attempt, key, [(first + at, value) for at, value in enumerate(values)])


def end(attempt: Attempt, event: Event = Event.EXITED_OK, *, reason: str = Reason.DONE, published: bool = True) -> None:
    """Its job ends, and its curves are complete."""
    transitions.move(attempt.job_id, event, attempt=attempt.number, reason=reason)
    if published:
        Job.objects.filter(pk=attempt.job_id).update(published_attempt=attempt.number)


def complete(trial: Trial, *values: float, key: str = "loss") -> None:
    """Run its job to its end with these values."""
    attempt = run(trial)
    report(attempt, values, key)
    end(attempt)


def live(study: Study) -> list[Trial]:
    return list(study.trials.live().select_related("training__job"))


class Killed(BaseException):
    """What no code of the product catches: the process is gone."""


def numbers(made: Study) -> list[int]:
    return list(made.trials.order_by("number").values_list("number", flat=True))


__all__ = ["Killed", "complete", "end", "live", "numbers", "report", "run", "study"]
