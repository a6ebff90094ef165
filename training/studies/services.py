"""Studies: create, pause, resume, stop, change, delete, enqueue parameters, train the best ones again."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotAllowed, NotFound, Refusals, StillInUse
from aiplatform.lib.titles import TITLE
from training.models import TrainingJob
from training.presets.catalog import PRESETS
from training.presets.preset import Param
from training.services import parameters
from training.studies import advancing, budget, objectives, requests, space
from training.studies.models import Study, Trial
from training.studies.objectives import Objective, Pruner
from training.studies.space import CHOICE, FLOAT, INT, BadRange, Range, Value
from workers.clock import now

S = Study.State
MOST_TRIALS, MOST_AT_ONCE, MOST_ENQUEUED, MOST_WARM = 1000, 100, 1000, 2000
MOST_DAYS = 365
NOT_SEARCHED = ("folds", "fold")
ranges_of, goals_of, pruner_of = space.read, objectives.read, objectives.read_pruner  # beside parameters of these names


class NotNow(DomainError):
    """The study is not in a state that allows this."""

    code: ClassVar[str] = "not_now"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a study may use.

    Args:
        max_trials: all that begin.
        at_once: trials that go on beside each other; what finds no free cards waits in the queue.
        time_limit: from its start; then no new trial begins, and those that run end by themselves. None: none.
        hours_limit: card-hours of all its trials, of trainings without cards core-hours; as above.
        target: a value of the first objective that is good enough.
    """

    max_trials: int = 20
    at_once: int = 2
    time_limit: timedelta | None = None
    hours_limit: float | None = None
    target: float | None = None


@dataclass(frozen=True, kw_only=True)
class StudyRequest:
    """What a person asks for.

    Args:
        training: body of `POST training/jobs/`, without what is searched.
        space: what is searched: rows or lines, see `space.read`.
        objectives: curves and what is wanted of them: rows or keys, see `objectives.read`.
        pruner: None, a name, or a row, see `objectives.read_pruner`.
        seed: same seed, same answers of the trials: same parameters; None draws one.
        warm_start: earlier studies whose trials are known from the beginning.
        enqueue: parameters to try first.
    """

    name: str
    training: Mapping[str, Any]
    space: Sequence[Any]
    objectives: Sequence[Any]
    description: str = ""
    sampler: str = Study.Sampler.TPE
    pruner: Any = None
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None
    visibility: str = Study.Visibility.PRIVATE
    warm_start: Sequence[Study] = ()
    enqueue: Sequence[Mapping[str, Any]] = ()


def create(*, user: User, request: StudyRequest) -> Study:
    """Make a study and begin with it.

    Raises:
        NameTaken: this person has one of that name.
        DomainError: see `check_limits`, `space.read`, `objectives.read`, `requests.taken`; all at once.
    """
    found, name = Refusals(), request.name.strip()
    ranges: list[Range] = []
    goals: list[Objective] = []
    pruner: Pruner | None = None
    kept: dict[str, Any] = {}
    with found:
        check_name(user, name)
    with found:
        if len(request.description) > 500:
            raise Invalid(_("A description has at most 500 characters."), field="description")
    with found:
        ranges = space.read(request.space)
    with found:
        goals = objectives.read(request.objectives)
    with found:
        pruner = objectives.read_pruner(request.pruner)
    with found:
        check_limits(request.limits)
    with found:
        if request.seed is not None and not 0 <= request.seed < 2**31:
            raise Invalid(_("The seed is a whole number from 0 to 2147483647."), field="seed")
    fitting = ranges
    if preset := PRESETS.get(str(request.training.get("preset") or "")):
        fitting = []  # what else is wrong is looked for with the ranges that are right
        for one in ranges:
            with found:
                _check_range(one, {param.name: param for param in preset.parameters})
                fitting.append(one)
    with found:
        kept = requests.taken(
            user, request.training, name=_usable(name),
            sample={one.name: one.middle() for one in fitting},
        )  # fmt: skip
    with found:
        if ranges and goals:
            _check_sampler(request.sampler, ranges, goals)
    with found:
        if pruner:
            _check_pruner(pruner, goals, kept.get("preset", ""))
    with found:
        enqueued = _checked_by_hand(ranges, request.enqueue) if ranges else []
    with found:
        warm = _warm(request.warm_start, ranges, goals) if ranges and goals else []
    found.end()
    try:
        with transaction.atomic():
            study = Study.objects.create(
                name=name, description=request.description.strip(), owner=user, visibility=request.visibility, **kept,
                space=[one.as_row() for one in ranges], objectives=objectives.as_rows(goals), sampler=request.sampler,
                pruner=vars(pruner) if pruner else {}, warm=warm, enqueued=enqueued,
                seed=secrets.randbelow(2**31) if request.seed is None else request.seed, **vars(request.limits),
            )  # fmt: skip
            nudge(study)
    except IntegrityError:
        raise _taken(name) from None
    return study


def _usable(name: str) -> str:
    """The name, or another one to check the rest with."""
    try:
        TITLE(name)
    except ValidationError:
        return "study"
    return name[:80]


def check_name(user: User, name: str) -> None:
    """Refuse a name that is none, or that another study of this person has."""
    if not 0 < len(name) <= 80:
        raise Invalid(_("A name has from 1 to %(most)s characters.") % {"most": 80}, field="name")
    try:
        TITLE(name)
    except ValidationError as exc:
        raise Invalid(exc.messages[0], field="name") from None
    if Study.objects.filter(owner=user, name=name).exists():
        raise _taken(name)


def free_name(user: User, *parts: str) -> str:
    """A name for a study of this person that is not taken."""
    taken = set(Study.objects.filter(owner=user).values_list("name", flat=True))
    return titles.derived(*parts, "study", taken=taken, room=80)


def check_parts(*, space: Sequence[Any] = (), objectives: Sequence[Any] = (), pruner: Any = None) -> None:
    """Refuse at once what `create` refuses of parts of a request that mean something without the others."""
    found = Refusals()
    with found:
        if space:
            ranges_of(space)
    with found:
        if objectives:
            goals_of(objectives)
    with found:
        pruner_of(pruner)
    found.end()


def check_limits(limits: Limits) -> None:
    """Refuse limits that are none.

    Raises:
        Invalid: naming each of them.
    """
    found = Refusals()
    with found:
        if not 1 <= limits.max_trials <= MOST_TRIALS:
            raise Invalid(_("From 1 to %(most)s trials.") % {"most": MOST_TRIALS}, field="max_trials")
    with found:
        if not 1 <= limits.at_once <= MOST_AT_ONCE:
            raise Invalid(_("From 1 to %(most)s trials at once.") % {"most": MOST_AT_ONCE}, field="at_once")
    with found:
        if limits.time_limit is not None and not timedelta(0) < limits.time_limit <= timedelta(days=MOST_DAYS):
            raise Invalid(
                _("The time is above 0 and at most %(most)s days.") % {"most": MOST_DAYS}, field="time_limit_s"
            )
    with found:
        if limits.hours_limit is not None and not 0 < limits.hours_limit <= 1e6:
            raise Invalid(_("Card-hours are a number above 0 and at most 1000000."), field="hours_limit")
    with found:
        if limits.target is not None and not math.isfinite(limits.target):
            raise Invalid(_("The target is a number."), field="target")
    found.end()


def _check_range(one: Range, params: Mapping[str, Param]) -> None:
    """Refuse a range that the preset's parameter cannot have."""
    param = params.get(one.name)
    if param is None:
        facts = {"name": one.name[:60], "names": ", ".join(params)}
        raise BadRange(_("The preset has no parameter %(name)s. It has: %(names)s.") % facts)
    if param.kind == "text" or one.name in NOT_SEARCHED:
        raise BadRange(_("%(name)s cannot be searched.") % {"name": one.name})
    if one.kind != CHOICE and (param.kind not in (FLOAT, INT) or (param.kind == INT and one.kind == FLOAT)):
        raise BadRange(
            _("%(name)s takes no such range. %(bounds)s") % {"name": one.name, "bounds": parameters.bounds(param)}
        )
    ends = one.choices if one.kind == CHOICE else (one.low, one.high)
    for value in ends:
        try:
            parameters.read_one(param, value)
        except parameters.BadParameter as exc:
            raise BadRange(exc.message) from None


def _check_sampler(sampler: str, ranges: Sequence[Range], goals: Sequence[Objective]) -> None:
    if sampler not in Study.Sampler.values:
        said = _("The sampler is one of %(names)s.") % {"names": ", ".join(Study.Sampler.values)}
        raise Invalid(said, field="sampler")
    if sampler == Study.Sampler.CMAES:
        if len(goals) > 1:
            raise Invalid(_("CMA-ES takes one objective. Choose NSGA-II or TPE for several."), field="sampler")
        if any(one.kind == CHOICE for one in ranges) or len(ranges) < 2:
            said = _("CMA-ES searches two or more numbers and no choices. Take TPE.")
            raise Invalid(said, field="sampler")
    if sampler == Study.Sampler.GRID and space.grid_size(ranges) > space.MOST_ON_GRID:
        facts = {"points": space.grid_size(ranges), "most": space.MOST_ON_GRID}
        said = _("The grid has %(points)s points, at most %(most)s are gone through. Search fewer parameters.")
        raise Invalid(said % facts, field="sampler")


def _check_pruner(pruner: Pruner, goals: Sequence[Objective], preset: str) -> None:
    if len(goals) > 1:
        raise Invalid(_("Trials with several objectives are not pruned. Take one, or no pruner."), field="pruner")
    if preset in PRESETS and not PRESETS[preset].finish:
        raise Invalid(_("Trainings of this preset cannot end early. Take no pruner."), field="pruner")


def _checked_by_hand(ranges: Sequence[Range], given: Sequence[Mapping[str, Any]]) -> list[dict[str, Value]]:
    if len(given) > MOST_ENQUEUED:
        raise Invalid(_("At most %(most)s sets of parameters.") % {"most": MOST_ENQUEUED}, field="enqueue")
    return [space.read_values(ranges, one, field="enqueue") for one in given]


def _warm(studies: Sequence[Study], ranges: Sequence[Range], goals: Sequence[Objective]) -> list[dict[str, Any]]:
    """Trials of earlier studies, as they are now: what this one knows from the beginning."""
    found: list[dict[str, Any]] = []
    names = {one.name for one in ranges}
    for study in studies:
        wanted = [(one.key, one.direction) for one in goals]
        theirs = [(one.key, one.direction) for one in objectives.of_rows(study.objectives)]
        if theirs != wanted or {row["name"] for row in study.space} != names:
            facts = {"study": study.name, "names": ", ".join(row["name"] for row in study.space)}
            said = _(
                "%(study)s searched %(names)s, maybe for another objective. Search the same to begin with its trials."
            )
            raise Invalid(said % facts, field="warm_start")
        told = study.trials.filter(state__in=[Trial.State.COMPLETE, Trial.State.PRUNED])
        for trial in told.order_by("number"):
            try:
                params = space.read_values(ranges, trial.params, whole=True)
            except BadRange:  # outside of what is searched now
                continue
            row = {"params": params, "state": trial.state, "values": trial.values, "points": trial.points}
            found.append(row)
    return found[:MOST_WARM]


def _taken(name: str) -> NameTaken:
    return NameTaken(_("You have a study called %(name)s already.") % {"name": name})


def nudge(study: Study) -> None:
    """Have a study looked at now; a lost message only costs until the next sweep."""
    enqueue("studies.advance", number=study.pk)


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
        raise NotNow(_("It is running."))
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
        raise NotNow(_("It is over."))
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
            raise Invalid(_("A description has at most 500 characters."), field="description")
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
    found = Refusals()
    counts: dict[str, Any] = {}
    for name, typed in (("max_trials", max_trials), ("at_once", at_once)):
        with found:
            if not typed.strip().isdecimal() or len(typed) > 9:
                raise Invalid(_("%(name)s is a whole number.") % {"name": name}, field=name)
            counts[name] = int(typed)
    found.end()
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
        raise StillInUse(_("Stop it first: it begins trials, or some of them go on."))
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
    if len(fresh.enqueued) >= MOST_ENQUEUED:
        raise Invalid(_("At most %(most)s sets of parameters.") % {"most": MOST_ENQUEUED}, field="params")
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
            raise NotFound(_("There is no trial %(number)s.") % {"number": number})
    if study.is_own_code and by.pk != study.owner_id:
        raise NotAllowed(_("It is made of code of its owner. Start a training of your own."))
    taken = set(TrainingJob.objects.filter(job__owner=by).values_list("job__name", flat=True))
    name = titles.derived(study.name, "best", taken=taken, room=100)
    return requests.submit(study, trial.params | dict(params or {}), name=name, user=by)
