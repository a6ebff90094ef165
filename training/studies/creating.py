"""Studies are made: what is asked is checked as a whole, then one row begins."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from training.presets.catalog import PRESETS
from training.presets.preset import Param
from training.runs import parameters
from training.studies import actions, objectives, requests, space
from training.studies.limits import Limits, check_limits
from training.studies.models import Study, Trial
from training.studies.objectives import Objective, Pruner
from training.studies.space import CHOICE, FLOAT, INT, BadRange, Range, Value

MAX_WARM = 2000
NOT_SEARCHED = ("folds", "fold")
ranges_of, goals_of, pruner_of = space.read, objectives.read, objectives.read_pruner  # beside parameters of these names


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
            actions.nudge(study)
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
    return titles.derive_name(*parts, "study", taken=taken, room=80)


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
    if sampler == Study.Sampler.GRID and space.grid_size(ranges) > space.MAX_ON_GRID:
        facts = {"points": space.grid_size(ranges), "most": space.MAX_ON_GRID}
        said = _("The grid has %(points)s points, at most %(most)s are gone through. Search fewer parameters.")
        raise Invalid(said % facts, field="sampler")


def _check_pruner(pruner: Pruner, goals: Sequence[Objective], preset: str) -> None:
    if len(goals) > 1:
        raise Invalid(_("Trials with several objectives are not pruned. Take one, or no pruner."), field="pruner")
    if preset in PRESETS and not PRESETS[preset].finish:
        raise Invalid(_("Trainings of this preset cannot end early. Take no pruner."), field="pruner")


def _checked_by_hand(ranges: Sequence[Range], given: Sequence[Mapping[str, Any]]) -> list[dict[str, Value]]:
    if len(given) > actions.MAX_ENQUEUED:
        raise Invalid(_("At most %(most)s sets of parameters.") % {"most": actions.MAX_ENQUEUED}, field="enqueue")
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
    return found[:MAX_WARM]


def _taken(name: str) -> NameTaken:
    return NameTaken(_("You have a study called %(name)s already.") % {"name": name})
