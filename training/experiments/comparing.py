"""Comparing trainings: what they reached, what they were given, and their curves on one grid."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.secret_names import hidden
from training import param_words
from training.experiments.grid import Grid, Numbers, Read, on_one_grid
from training.models import TrainingJob
from training.presets.catalog import PRESETS
from workers.models import Curve
from workers.output import media, point_files

MOST_RUNS, MOST_KEYS, MOST_PARAMS = 20, 12, 1000
WIDTH, WIDEST = 1000, 4000
AXES = ("step", "time")


@dataclass(frozen=True)
class Figure:
    """What one key of a run amounts to, over all its attempts."""

    count: int
    step: int
    last: float
    lowest: float
    lowest_step: int
    highest: float
    highest_step: int


@dataclass(frozen=True)
class Row:
    """A parameter or fact, with its value for each run; None where a run has none."""

    name: str
    label: str
    values: tuple[Any, ...]

    @property
    def differs(self) -> bool:
        """Whether the runs do not all have the same."""
        return any(value != self.values[0] for value in self.values)


def chosen(user: User, numbers: Iterable[int]) -> list[TrainingJob]:
    """Return the trainings of these numbers in their order, each once.

    Raises:
        Invalid: none, or more than twenty.
        NotFound: this person sees none of such a number.
    """
    wanted = list(dict.fromkeys(numbers))
    if not wanted:
        raise Invalid(_("Choose the trainings to compare."), field="run")
    if len(wanted) > MOST_RUNS:
        raise Invalid(_("Compare at most %(limit)s trainings.") % {"limit": MOST_RUNS}, field="run")
    found = TrainingJob.objects.visible_to(user).for_list().in_bulk(wanted)
    if missing := [number for number in wanted if number not in found]:
        said = _("There is no training %(numbers)s.") % {"numbers": ", ".join(map(str, missing))}
        raise NotFound(said)
    return [found[number] for number in wanted]


def figures(trainings: Sequence[TrainingJob]) -> list[dict[str, Figure]]:
    """What each key of each training amounts to; a restored run's attempts count together."""
    return figures_of_jobs([training.job_id for training in trainings])


def figures_of_jobs(jobs: Sequence[int]) -> list[dict[str, Figure]]:
    """The same of jobs of any kind, by their numbers."""
    by_job: dict[int, dict[str, Figure]] = {job: {} for job in jobs}
    rows = Curve.objects.filter(attempt__job__in=by_job).select_related("attempt").order_by("attempt__number")
    for row in rows:
        own = by_job[row.attempt.job_id]
        before = own.get(row.key)
        low, high = (row.lowest, row.lowest_step), (row.highest, row.highest_step)
        if before:
            low = min(low, (before.lowest, before.lowest_step), key=lambda one: one[0])
            high = max(high, (before.highest, before.highest_step), key=lambda one: one[0])
        count = row.count + (before.count if before else 0)
        own[row.key] = Figure(count, row.step, row.value, *low, *high)
    return [by_job[job] for job in jobs]


def keys(found: Iterable[Mapping[str, Figure]]) -> list[str]:
    """All keys that any of the runs has: of validation first, what they used last."""
    return sorted({key for each in found for key in each}, key=lambda key: (_place(key), key))


def _place(key: str) -> int:
    return 0 if key.startswith(("val/", "test/")) else 2 if key.startswith("system/") else 1


def rows(trainings: Sequence[TrainingJob]) -> list[Row]:
    """Facts and parameters beside each other, those that differ first."""
    facts = [
        Row("preset", str(_("Preset")), tuple(training.preset or _("own code") for training in trainings)),
        Row("dataset", str(_("Dataset")), tuple(training.version_label or None for training in trainings)),
        Row("cards", str(_("Cards")), tuple(training.job.total_gpus for training in trainings)),
    ]
    given = [_params(training) for training in trainings]
    names = list(dict.fromkeys(name for each in given for name in each))[:MOST_PARAMS]
    facts += [Row(name, str(param_words.label(name)), tuple(each.get(name) for each in given)) for name in names]
    return sorted(facts, key=lambda row: not row.differs)


def _params(training: TrainingJob) -> dict[str, Any]:
    preset = PRESETS.get(training.preset)
    if preset is None:
        return dict(hidden(media.reported_params(training.job) | training.params))
    return {param.name: param.default for param in preset.parameters} | training.params


def curves(
    trainings: Sequence[TrainingJob],
    key: str,
    *,
    axis: str = "step",
    width: int = WIDTH,
    span: tuple[float, float] | None = None,
) -> Grid:
    """The curves of one key on one grid.

    Args:
        axis: "step", or "time": seconds since a run's first point.
        width: stretches of the axis, 2 to 4,000.
        span: part of the axis; None is all of it.

    Raises:
        Invalid: an axis, a width or a span that is none.
    """
    return curves_of_jobs([training.job_id for training in trainings], key, axis=axis, width=width, span=span)


def curves_of_jobs(
    jobs: Sequence[int], key: str, *, axis: str = "step", width: int = WIDTH, span: tuple[float, float] | None = None
) -> Grid:
    """The same of jobs of any kind, by their numbers."""
    if axis not in AXES:
        raise Invalid(_("%(name)s is one of %(words)s.") % {"name": "axis", "words": ", ".join(AXES)}, field="axis")
    if not 2 <= width <= WIDEST:
        raise Invalid(_("width is a whole number from 2 to %(limit)s.") % {"limit": WIDEST}, field="width")
    if span and not (all(map(math.isfinite, span)) and span[0] <= span[1]):
        raise Invalid(_("from and to are numbers, from the lower one."), field="from")
    return on_one_grid(_of_runs(jobs, key, axis), width=width, span=span)


def _of_runs(jobs: Sequence[int], key: str, axis: str) -> list[Read]:
    found: dict[int, list[Curve]] = {job: [] for job in jobs}
    known = Curve.objects.filter(attempt__job__in=jobs, key=key).select_related("attempt")
    for curve in known.order_by("attempt__number"):
        found[curve.attempt.job_id].append(curve)
    keeps_all = axis == "time" and key.startswith("system/")  # its steps begin anew with each attempt
    return [partial(_of_one, found[job], axis, keeps_all=keeps_all) for job in jobs]


def _of_one(attempts: Collection[Curve], axis: str, *, keeps_all: bool) -> tuple[Numbers, Numbers]:
    """Places and values of a run: what an attempt reported counts up to where the next one began, unless all does."""
    parts: list[point_files.Points] = []
    for curve in attempts:
        own = point_files.read(point_files.path(curve.attempt.job_id, curve.attempt.number, curve.key), curve.count)
        if len(own):
            before = parts if keeps_all else [part[part["step"] < own["step"].min()] for part in parts]
            parts = [*before, own]
    points = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, point_files.POINT), *parts])
    if axis == "step" or not len(points):
        return points["step"], points["value"]
    return points["at"] - points["at"].min(), points["value"]
