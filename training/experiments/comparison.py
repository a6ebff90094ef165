"""Comparing runs: what they reached, what they were given, and their curves on one grid."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.secret_names import mask_params
from training.catalog import metric_labels, param_labels
from training.catalog.task_kinds import TASKS
from training.experiments import figure_sql
from training.experiments.grid import Grid, Numbers, Read, on_one_grid
from training.experiments.models import Run, RunCurve
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from workers.core.models import HAS_VALUE, Curve, Figures, Job
from workers.jobs.output import media, metrics, point_files

MAX_RUNS, MAX_KEYS, MAX_PARAMS = 20, 12, 1000
MAX_HEADLINE = 4  # metrics that the page of a run shows first
WIDTH, WIDEST = 1000, 4000
AXES = ("step", "time", "epoch")


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


@dataclass(frozen=True)
class ParamGroup:
    """Parameters under one heading of the form, each as (name, label, value)."""

    label: str
    rows: tuple[tuple[str, str, Any], ...]


def chosen(user: User, numbers: Iterable[int], *, trainings: Iterable[int] = ()) -> list[Run]:
    """Return the runs of these numbers in their order, each once, and then those of trainings of such numbers.

    Raises:
        Invalid: none, or more than twenty.
        NotFound: this person sees none of such a number.
    """
    wanted, trained = list(dict.fromkeys(numbers)), list(dict.fromkeys(trainings))
    if not wanted and not trained:
        raise Invalid(_("Select the runs to compare."), field="run")
    if len(wanted) + len(trained) > MAX_RUNS:
        raise Invalid(_("Compare at most %(limit)s runs.") % {"limit": MAX_RUNS}, field="run")
    rows = Run.objects.visible_to(user).for_comparison()
    by_number = {run.pk: run for run in rows.filter(Q(pk__in=wanted) | Q(job__training__in=trained))}
    of_training = {run.training.pk: run for run in by_number.values() if run.training is not None}
    missing = [number for number in wanted if number not in by_number]
    absent = [number for number in trained if number not in of_training]
    if missing or absent:
        message = _("Run %(numbers)s not found.") if missing else _("Training %(numbers)s not found.")
        raise NotFound(message % {"numbers": ", ".join(map(str, missing or absent))})
    return list(
        dict.fromkeys([*(by_number[number] for number in wanted), *(of_training[number] for number in trained)])
    )


def figures(runs: Sequence[Run]) -> list[dict[str, Figure]]:
    """Return the summary of each key of each run; the attempts of a restored run count together."""
    by_run: dict[int, dict[str, Figure]] = {run.pk: {} for run in runs}
    for number, row in _curves(runs):
        own = by_run[number]
        before = own.get(row.key)
        low, high = (row.lowest, row.lowest_step), (row.highest, row.highest_step)
        if before:
            low = min(low, (before.lowest, before.lowest_step), key=lambda extreme: extreme[0])
            high = max(high, (before.highest, before.highest_step), key=lambda extreme: extreme[0])
        count = row.count + (before.count if before else 0)
        own[row.key] = Figure(count, row.step, row.value, *low, *high)
    return [by_run[run.pk] for run in runs]


def with_best(key: str, each: Sequence[Figure | None]) -> list[tuple[Figure | None, bool]]:
    """Return the figures of runs, each with whether it is the best of all; of equal ones, and of what rates no model,
    none is.
    """
    rates = key.startswith(("val/", "test/")) or figure_sql.less_is_better(key)
    less = figure_sql.less_is_better(key)
    values = [None if figure is None else figure.lowest if less else figure.highest for figure in each]
    there = [value for value in values if value is not None]
    top = (min(there) if less else max(there)) if rates and len(set(there)) > 1 else None
    return [(figure, value is not None and value == top) for figure, value in zip(each, values, strict=True)]


def figures_of_jobs(jobs: Sequence[int]) -> list[dict[str, Figure]]:
    """The same of jobs of any kind, by their numbers."""
    return figures([Run(pk=job, job_id=job) for job in jobs])


def _curves(runs: Sequence[Run], **only: Any) -> Iterator[tuple[int, Figures]]:
    """Numbers of runs with their curves, of one run in the order of its attempts."""
    of_job = {run.job_id: run.pk for run in runs if run.job_id is not None}
    rows = Curve.objects.filter(HAS_VALUE, attempt__job__in=of_job, **only).select_related("attempt")
    for curve in rows.order_by("attempt__number"):
        yield of_job[curve.attempt.job_id], curve
    alone = [run.pk for run in runs if run.job_id is None]
    if alone:
        for other in RunCurve.objects.filter(HAS_VALUE, run__in=alone, **only):
            yield other.run_id, other


def keys(figures_by_run: Iterable[Mapping[str, Figure]]) -> list[str]:
    """Return all keys that any of the runs has: validation first, resource usage last."""
    return sorted({key for each in figures_by_run for key in each}, key=lambda key: (_place(key), key))


def _place(key: str) -> int:
    return 0 if key.startswith(("val/", "test/")) else 2 if key.startswith("system/") else 1


def rows(runs: Sequence[Run]) -> list[Row]:
    """Return facts and parameters side by side, those that differ first."""
    trained = [run.training for run in runs]
    cards = [run.job.total_gpus if run.job is not None else None for run in runs]
    facts = [
        Row(
            "preset",
            str(_("Preset")),
            tuple(training and (training.preset or _("custom code")) for training in trained),
        ),
        Row("dataset", str(_("Dataset")), tuple((training and training.version_label) or None for training in trained)),
        Row("cards", str(_("GPUs")), tuple(cards)),
        *_machines(runs),
    ]
    params_by_run = [_params(run) for run in runs]
    names = list(dict.fromkeys(name for each in params_by_run for name in each))[:MAX_PARAMS]
    facts += [
        Row(name, str(param_labels.label(name)), tuple(each.get(name) for each in params_by_run)) for name in names
    ]
    return sorted(facts, key=lambda row: not row.differs)


def _machines(runs: Sequence[Run]) -> list[Row]:
    """Return where the runs were executed; facts that are equal and ordinary are left out."""
    jobs = [run.job for run in runs]
    facts = [
        Row("cluster", str(_("Cluster")), tuple(job and job.cluster.name for job in jobs)),
        Row("nodes", str(_("Nodes")), tuple(job and job.nodes for job in jobs)),
        Row("cpus", str(_("Cores")), tuple(job and job.cpus for job in jobs)),
        Row("image", str(_("Image")), tuple(_image(job) for job in jobs)),
        Row("code", str(_("Code")), tuple(_code(run) for run in runs)),
    ]
    return [row for row in facts if row.differs or (row.name in ("image", "code") and row.values[0])]


def _image(job: Job | None) -> str | None:
    use = getattr(job, "image_use", None)
    return str(use) if use is not None else None


def _code(run: Run) -> str | None:
    request = run.training or getattr(run.job, "command", None)
    return str(request.code) if request is not None and request.code is not None else None


def grouped_params(run: Run) -> dict[str, list[ParamGroup]]:
    """Return the parameters of a run in the groups of the form: `changed`, and `defaults` that have the preset's value.

    Without a preset nothing has a default.
    """
    preset = _preset(run)
    by_name = {param.name: param for param in preset.parameters} if preset else {}
    params = _params(run)
    usual = {name for name, param in by_name.items() if params.get(name) == param.default}
    places = {str(group): str(label) for group, label in param_labels.GROUPS.items()}
    groups: dict[str, dict[str, list[tuple[str, str, Any]]]] = {"changed": {}, "defaults": {}}
    order = list(places)
    for name in sorted(params, key=lambda name: order.index(by_name[name].group) if name in by_name else len(order)):
        label = places[by_name[name].group] if name in by_name else (str(_("Other")) if by_name else "")
        row = (name, str(param_labels.label(name)), params[name])
        groups["defaults" if name in usual else "changed"].setdefault(label, []).append(row)
    return {part: [ParamGroup(label, tuple(rows)) for label, rows in own.items()] for part, own in groups.items()}


def _preset(run: Run) -> Preset | None:
    return PRESETS.get(run.training.preset) if run.training is not None else None


def headline(run: Run, own: Mapping[str, Figure]) -> list[tuple[str, float]]:
    """Return the key metrics of a run with their best values: that of its task first, the training loss last."""
    preset = _preset(run)
    task = TASKS.find(preset.task) if preset else None
    usual = [task.figure[0]] if task else []
    shown = [key for key in keys([own]) if _place(key) == 0 and not metric_labels.is_part(key)]
    named = sorted(shown, key=lambda key: (key not in usual, key not in metric_labels.LABELS))
    losses = [key for key in ("train/loss", "loss") if key in own]
    chosen_keys = [*named[: MAX_HEADLINE - 1], *losses[:1]]
    return [(key, own[key].lowest if figure_sql.less_is_better(key) else own[key].highest) for key in chosen_keys]


def _params(run: Run) -> dict[str, Any]:
    preset = _preset(run)
    defaults = {param.name: param.default for param in preset.parameters} if preset else {}
    if preset is None and run.job is not None:
        defaults = dict(mask_params(media.reported_params(run.job)))
    return defaults | {row.key: row.value for row in run.params.all()}


def curves(
    runs: Sequence[Run],
    key: str,
    *,
    axis: str = "step",
    width: int = WIDTH,
    span: tuple[float, float] | None = None,
) -> Grid:
    """The curves of one key on one grid.

    Args:
        axis: "step"; "time": seconds since a run's first point; "epoch": as the run reports it, between two reports by
            the way from one to the other; a run that reports none has no place on it.
        width: stretches of the axis, 2 to 4,000.
        span: part of the axis; None is all of it.

    Raises:
        Invalid: an axis, a width or a span that is none.
    """
    if axis not in AXES:
        raise Invalid(
            _("%(name)s must be one of %(words)s.") % {"name": "axis", "words": ", ".join(AXES)}, field="axis"
        )
    if not 2 <= width <= WIDEST:
        raise Invalid(_("width must be an integer from 2 to %(limit)s.") % {"limit": WIDEST}, field="width")
    if span and not (all(map(math.isfinite, span)) and span[0] <= span[1]):
        raise Invalid(_("from and to must be numbers, the smaller one first."), field="from")
    return on_one_grid(_of_runs(runs, key, axis), width=width, span=span)


def curves_of_jobs(jobs: Sequence[int], key: str, **how: Any) -> Grid:
    """The same of jobs of any kind, by their numbers; see `curves`."""
    return curves([Run(pk=job, job_id=job) for job in jobs], key, **how)


def _of_runs(runs: Sequence[Run], key: str, axis: str) -> list[Read]:
    by_run: dict[int, list[Figures]] = {run.pk: [] for run in runs}
    for number, curve in _curves(runs, key=key):
        by_run[number].append(curve)
    if axis == "epoch":
        return _by_epoch(runs, by_run if not key.startswith("system/") else {})  # whose steps are seconds
    keeps_all = axis == "time" and key.startswith("system/")  # its steps begin anew with each attempt
    return [partial(_of_one, by_run[run.pk], axis, keeps_all=keeps_all) for run in runs]


def _by_epoch(runs: Sequence[Run], by_run: Mapping[int, list[Figures]]) -> list[Read]:
    epochs_by_run: dict[int, list[Figures]] = {}
    for key in figure_sql.EPOCHS:
        missing = [run for run in runs if run.pk not in epochs_by_run]
        for number, curve in _curves(missing, key=key):
            epochs_by_run.setdefault(number, []).append(curve)
    return [
        partial(_at_epochs, partial(_of_one, by_run.get(run.pk, []), "step", keeps_all=False),
                partial(_of_one, epochs_by_run.get(run.pk, []), "step", keeps_all=False))
        for run in runs
    ]  # fmt: skip


def _at_epochs(curve: Read, epochs: Read) -> tuple[Numbers, Numbers]:
    """Return a curve over the epochs of its steps; beyond the last report, epochs are extrapolated at the mean rate."""
    (steps, values), (epoch_steps, epoch_values) = curve(), epochs()
    if not len(steps) or not len(epoch_steps):
        return np.empty(0), np.empty(0)
    order = np.argsort(epoch_steps, kind="stable")
    epoch_steps, epoch_values = epoch_steps[order].astype(float), epoch_values[order]
    places = np.interp(steps, epoch_steps, epoch_values)
    speed = (
        (epoch_values[-1] - epoch_values[0]) / (epoch_steps[-1] - epoch_steps[0])
        if epoch_steps[-1] > epoch_steps[0]
        else 0.0
    )
    places = np.where(steps > epoch_steps[-1], epoch_values[-1] + (steps - epoch_steps[-1]) * speed, places)
    places = np.where(
        steps < epoch_steps[0],
        np.maximum(epoch_values[0] - (epoch_steps[0] - steps) * speed, min(epoch_values[0], 0.0)),
        places,
    )
    return places, values


def of_job(job: Job, key: str) -> tuple[Numbers, Numbers]:
    """Steps and values of one curve of a job, over all its attempts."""
    return _of_runs([Run(pk=0, job=job)], key, "step")[0]()


def _of_one(attempts: Collection[Figures], axis: str, *, keeps_all: bool) -> tuple[Numbers, Numbers]:
    """Places and values of a run: what an attempt reported counts up to where the next one began, unless all does."""
    parts: list[point_files.Points] = []
    for curve in attempts:
        own = metrics.only_finite(point_files.read(_file(curve), curve.count))
        if len(own):
            before = parts if keeps_all else [part[part["step"] < own["step"].min()] for part in parts]
            parts = [*before, own]
    points = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, point_files.POINT), *parts])
    if axis == "step" or not len(points):
        return points["step"], points["value"]
    return points["at"] - points["at"].min(), points["value"]


def _file(curve: Figures) -> Path:
    if isinstance(curve, Curve):
        return point_files.path(curve.attempt.job_id, curve.attempt.number, curve.key)
    assert isinstance(curve, RunCurve)
    return point_files.path(f"run-{curve.run_id}", 1, curve.key)
