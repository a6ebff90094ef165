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
    """Create a study and start it.

    Raises:
        NameTaken: this person has one of that name.
        DomainError: see `check_limits`, `space.read`, `objectives.read`, `requests.parse_training`; all at once.
    """
    refusals, name = Refusals(), request.name.strip()
    ranges: list[Range] = []
    goals: list[Objective] = []
    pruner: Pruner | None = None
    columns: dict[str, Any] = {}
    with refusals:
        check_name(user, name)
    with refusals:
        if len(request.description) > 500:
            raise Invalid(_("The description can have at most 500 characters."), field="description")
    with refusals:
        ranges = space.read(request.space)
    with refusals:
        goals = objectives.read(request.objectives)
    with refusals:
        pruner = objectives.read_pruner(request.pruner)
    with refusals:
        check_limits(request.limits)
    with refusals:
        if request.seed is not None and not 0 <= request.seed < 2**31:
            raise Invalid(_("The seed must be an integer from 0 to 2147483647."), field="seed")
    fitting = ranges
    if preset := PRESETS.get(str(request.training.get("preset") or "")):
        fitting = []  # what else is wrong is looked for with the ranges that are right
        for dimension in ranges:
            with refusals:
                _check_range(dimension, {param.name: param for param in preset.parameters})
                fitting.append(dimension)
    with refusals:
        columns = requests.parse_training(
            user, request.training, name=_usable(name),
            sample={dimension.name: dimension.middle() for dimension in fitting},
        )  # fmt: skip
    with refusals:
        if ranges and goals:
            _check_sampler(request.sampler, ranges, goals)
    with refusals:
        if pruner:
            _check_pruner(pruner, goals, columns.get("preset", ""))
    with refusals:
        enqueued = _checked_by_hand(ranges, request.enqueue) if ranges else []
    with refusals:
        warm = _warm(request.warm_start, ranges, goals) if ranges and goals else []
    refusals.end()
    try:
        with transaction.atomic():
            study = Study.objects.create(
                name=name, description=request.description.strip(), owner=user, visibility=request.visibility,
                space=[dimension.as_row() for dimension in ranges], objectives=objectives.as_rows(goals),
                sampler=request.sampler, pruner=vars(pruner) if pruner else {}, warm=warm, enqueued=enqueued,
                seed=secrets.randbelow(2**31) if request.seed is None else request.seed, **columns,
                **vars(request.limits),
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
        raise Invalid(_("The name must have 1 to %(most)s characters.") % {"most": 80}, field="name")
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
    refusals = Refusals()
    with refusals:
        if space:
            ranges_of(space)
    with refusals:
        if objectives:
            goals_of(objectives)
    with refusals:
        pruner_of(pruner)
    refusals.end()


def _check_range(dimension: Range, params: Mapping[str, Param]) -> None:
    """Refuse a range that the preset's parameter does not accept."""
    param = params.get(dimension.name)
    if param is None:
        facts = {"name": dimension.name[:60], "names": ", ".join(params)}
        raise BadRange(_("The preset has no parameter %(name)s. Available parameters: %(names)s.") % facts)
    if param.kind == "text" or dimension.name in NOT_SEARCHED:
        raise BadRange(_("%(name)s cannot be searched.") % {"name": dimension.name})
    if dimension.kind != CHOICE and (param.kind not in (FLOAT, INT) or (param.kind == INT and dimension.kind == FLOAT)):
        raise BadRange(
            _("%(name)s does not support this range. %(bounds)s")
            % {"name": dimension.name, "bounds": parameters.bounds(param)}
        )
    ends = dimension.choices if dimension.kind == CHOICE else (dimension.low, dimension.high)
    for value in ends:
        try:
            parameters.read_one(param, value)
        except parameters.BadParameter as exc:
            raise BadRange(exc.message) from None


def _check_sampler(sampler: str, ranges: Sequence[Range], goals: Sequence[Objective]) -> None:
    if sampler not in Study.Sampler.values:
        message = _("The sampler must be one of %(names)s.") % {"names": ", ".join(Study.Sampler.values)}
        raise Invalid(message, field="sampler")
    if sampler == Study.Sampler.CMAES:
        if len(goals) > 1:
            raise Invalid(_("CMA-ES supports one objective. Choose NSGA-II or TPE for several."), field="sampler")
        if any(dimension.kind == CHOICE for dimension in ranges) or len(ranges) < 2:
            message = _("CMA-ES supports two or more numeric parameters and no choices. Use TPE.")
            raise Invalid(message, field="sampler")
    if sampler == Study.Sampler.GRID and space.grid_size(ranges) > space.MAX_ON_GRID:
        facts = {"points": space.grid_size(ranges), "most": space.MAX_ON_GRID}
        message = _("The grid has %(points)s points; the limit is %(most)s. Search fewer parameters.")
        raise Invalid(message % facts, field="sampler")


def _check_pruner(pruner: Pruner, goals: Sequence[Objective], preset: str) -> None:
    if len(goals) > 1:
        raise Invalid(
            _("Trials with several objectives cannot be pruned. Use one objective, or no pruner."), field="pruner"
        )
    if preset in PRESETS and not PRESETS[preset].finish:
        raise Invalid(_("Training jobs of this preset cannot end early. Use no pruner."), field="pruner")


def _checked_by_hand(ranges: Sequence[Range], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Value]]:
    if len(rows) > actions.MAX_ENQUEUED:
        raise Invalid(_("At most %(most)s sets of parameters.") % {"most": actions.MAX_ENQUEUED}, field="enqueue")
    return [space.read_values(ranges, row, field="enqueue") for row in rows]


def _warm(studies: Sequence[Study], ranges: Sequence[Range], goals: Sequence[Objective]) -> list[dict[str, Any]]:
    """Return the trials of earlier studies, as they are now, that the new study starts with."""
    rows: list[dict[str, Any]] = []
    names = {dimension.name for dimension in ranges}
    for study in studies:
        wanted = [(goal.key, goal.direction) for goal in goals]
        theirs = [(goal.key, goal.direction) for goal in objectives.of_rows(study.objectives)]
        if theirs != wanted or {row["name"] for row in study.space} != names:
            facts = {"study": study.name, "names": ", ".join(row["name"] for row in study.space)}
            message = _(
                "%(study)s searched %(names)s, possibly for another objective. Search the same parameters to "
                "reuse its trials."
            )
            raise Invalid(message % facts, field="warm_start")
        trials = study.trials.filter(state__in=[Trial.State.COMPLETE, Trial.State.PRUNED])
        for trial in trials.order_by("number"):
            try:
                params = space.read_values(ranges, trial.params, require_all=True)
            except BadRange:  # outside of what is searched now
                continue
            row = {"params": params, "state": trial.state, "values": trial.values, "points": trial.points}
            rows.append(row)
    return rows[:MAX_WARM]


def _taken(name: str) -> NameTaken:
    return NameTaken(_("You already have a study named %(name)s.") % {"name": name})
