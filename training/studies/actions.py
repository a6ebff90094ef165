"""What people do with a study: pause, resume, stop, change, delete, try parameters next, train the best again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed, NotFound, Refusals, StillInUse
from training.runs.models import TrainingJob
from training.studies import advancing, budget, requests, space
from training.studies.limits import Limits, check_limits
from training.studies.models import Study
from workers.core.clock import now

S = Study.State
MAX_ENQUEUED = 1000


class NotNow(DomainError, code="not_now"):
    """The study is not in a state that allows this."""


def nudge(study: Study) -> None:
    """Have a study looked at now; a lost message only costs until the next sweep."""
    enqueue("studies.advance", study_id=study.pk)


@transaction.atomic
def pause(study: Study, *, by: User) -> Study:
    """Begin no new trials; those that go on do so.

    Raises:
        NotNow: it does not run.
    """
    message = wording.message("study.paused_by", person=by.get_full_name())
    if not Study.objects.filter(pk=study.pk, state=S.RUNNING).update(state=S.PAUSED, message=message):
        raise NotNow(_("Only a running study can be paused."))
    study.refresh_from_db()
    return study


@transaction.atomic
def resume(study: Study, *, by: User) -> Study:
    """Go on with a study that was paused or has ended; where a limit ended it, raise that first.

    Raises:
        NotNow: it runs.
    """
    fresh = Study.objects.select_for_update().get(pk=study.pk)
    if fresh.state == S.RUNNING:
        raise NotNow(_("The study is running."))
    began = {} if fresh.state == S.PAUSED else {"started_at": now()}
    Study.objects.filter(pk=study.pk).update(state=S.RUNNING, message={}, ended_at=None, **began)
    nudge(study)
    study.refresh_from_db()
    return study


@transaction.atomic
def stop(study: Study, *, by: User) -> Study:
    """End a study with all of its trials.

    Raises:
        NotNow: it is over, and none of its trials goes on.
    """
    fresh = Study.objects.select_for_update().get(pk=study.pk)
    if fresh.is_over and not fresh.trials.live().exists():
        raise NotNow(_("The study has ended."))
    advancing.stop_all(fresh)
    if not fresh.is_over:
        fresh.state, fresh.ended_at = S.STOPPED, now()
        fresh.message = wording.message("study.stopped_by", person=by.get_full_name())
        fresh.save(update_fields=["state", "ended_at", "message"])
    nudge(study)
    study.refresh_from_db()
    return study


@transaction.atomic
def change(
    study: Study, *, limits: Limits | None = None, description: str | None = None, visibility: str | None = None
) -> Study:
    """Change limits, description or who sees it; what is None stays.

    Raises:
        Invalid: see `check_limits`.
    """
    fresh = Study.objects.select_for_update().get(pk=study.pk)
    if limits is not None:
        check_limits(limits)
        for name, value in vars(limits).items():
            setattr(fresh, name, value)
    if description is not None:
        if len(description) > 500:
            raise Invalid(_("The description can have at most 500 characters."), field="description")
        fresh.description = description.strip()
    if visibility is not None:
        fresh.visibility = visibility
    fresh.save(update_fields=[*vars(Limits()), "description", "visibility"])
    nudge(study)
    study.refresh_from_db()
    return study


def change_counts(study: Study, max_trials: str, at_once: str) -> Study:
    """Change how many trials there may be, as people type it.

    Raises:
        Invalid: no whole numbers, or see `check_limits`.
    """
    refusals = Refusals()
    counts: dict[str, Any] = {}
    for name, typed in (("max_trials", max_trials), ("at_once", at_once)):
        with refusals:
            if not typed.strip().isdecimal() or len(typed) > 9:
                raise Invalid(_("%(name)s must be an integer.") % {"name": name}, field=name)
            counts[name] = int(typed)
    refusals.end()
    return change(study, limits=replace(limits_of(study), **counts))


def limits_of(study: Study) -> Limits:
    """The limits of a study as they are."""
    return Limits(**{name: getattr(study, name) for name in vars(Limits())})


@transaction.atomic
def delete(study: Study) -> None:
    """Delete a study; its trainings stay.

    Raises:
        StillInUse: some of its trials go on.
    """
    fresh = Study.objects.select_for_update().get(pk=study.pk)
    if fresh.trials.live().exists() or not fresh.is_over:
        raise StillInUse(_("Stop the study first: it starts trials, or some are still running."))
    fresh.delete()


@transaction.atomic
def put_next(study: Study, params: Mapping[str, Any]) -> Study:
    """Try these parameters next; the sampler adds what is missing.

    Raises:
        BadRange: unknown, or outside of what is searched.
        Invalid: too many wait already.
    """
    fresh = Study.objects.select_for_update().get(pk=study.pk)
    values = space.read_values(space.of_rows(fresh.space), params)
    if len(fresh.enqueued) >= MAX_ENQUEUED:
        raise Invalid(_("At most %(most)s sets of parameters.") % {"most": MAX_ENQUEUED}, field="params")
    fresh.enqueued = [*fresh.enqueued, values]
    fresh.save(update_fields=["enqueued"])
    nudge(study)
    study.refresh_from_db()
    return study


def train_best(
    study: Study, *, by: User, number: int | None = None, params: Mapping[str, Any] | None = None
) -> TrainingJob:
    """Train with the parameters of the best trial once more, as an ordinary training: longer, say.

    Args:
        number: another trial.
        params: in place of the study's own, and of the trial's.

    Raises:
        NotAllowed: the study is of somebody else's code.
        NotNow: no trial has completed.
        DomainError: the training is refused.
    """
    if not study.trials.exists():
        raise NotNow(_("No trial has completed yet."))
    if number is None:
        trial = budget.best_of(study, list(study.trials.all()))
        if trial is None:
            raise NotNow(_("No trial has completed yet."))
    else:
        trial = study.trials.filter(number=number).first()
        if trial is None:
            raise NotFound(_("Trial %(number)s not found.") % {"number": number})
    if study.is_own_code and by.pk != study.owner_id:
        raise NotAllowed(_("The trial uses code of its owner. Start a training of your own."))
    taken = set(TrainingJob.objects.filter(job__owner=by).values_list("job__name", flat=True))
    name = titles.derive_name(study.name, "best", taken=taken, room=100)
    return requests.submit(study, trial.params | dict(params or {}), name=name, user=by)
