"""Importance of parameters among runs that are not part of a study (PED-ANOVA)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from training.experiments import figure_sql, table
from training.studies import decider
from training.studies.decider import COMPLETE, Past, Problem
from training.studies.objectives import MAXIMIZE, MINIMIZE
from training.studies.space import CHOICE, FLOAT, MAX_CHOICES, Range

MAX_PARAMS = 20
BY_MAGNITUDE = 100.0  # a parameter whose largest value is so many times its smallest is looked at by its logarithm


@dataclass(frozen=True)
class RunImportance:
    """Importance of each parameter for a metric, largest first; together 1, {} for too few runs.

    Attributes:
        runs: number of runs with the metric and all of `params`.
        params: parameters of more than half of the runs with the metric that have more than one value.
    """

    figure: str
    direction: str
    runs: int
    params: list[str]
    importance: dict[str, float] = field(default_factory=dict)


def of_runs(user: User, *, figure: str, text: str = "", archived: bool = False) -> RunImportance:
    """Compare the runs that a filter of the run table describes, at most the newest 1,000.

    Args:
        figure: a column of the table, as best(val/accuracy).

    Raises:
        Invalid: a filter or a figure that is none.
    """
    read = table.figure_of(figure)
    if read is None:
        raise Invalid(
            _("%(name)s is not a metric. Write it as best(val/accuracy).") % {"name": figure[:60]}, field="figure"
        )
    filters: dict[str, Any] = {"text": text, "archived": archived}
    figure_table = table.table(user, **filters, columns=[figure])
    least = sum(value is not None for value in figure_table.columns[0].values) / 2
    names = [
        column.name
        for column in figure_table.known
        if column.name.startswith("params.") and column.values > 1 and column.runs > least
    ]
    param_table = table.table(user, **filters, columns=[figure, *names[:MAX_PARAMS]])
    values, *columns = param_table.columns
    rows = [row for row, value in enumerate(values.values) if value is not None]
    rows = [row for row in rows if all(column.values[row] is not None for column in columns)]
    ranges = {column.name: _range(column.name, [column.values[row] for row in rows]) for column in columns}
    space = [dimension for dimension in ranges.values() if dimension is not None]
    low = read[0] == figure_sql.LOWEST or (read[0] != figure_sql.HIGHEST and figure_sql.less_is_better(read[1]))
    direction = MINIMIZE if low else MAXIMIZE
    used = [column for column in columns if ranges[column.name] is not None]
    pasts = [
        Past(
            {column.name: _value(ranges[column.name], column.values[row]) for column in used},
            COMPLETE,
            [values.values[row]],
        )
        for row in rows
    ]
    problem = Problem(space=space, directions=[direction], sampler="random", pruner=None, seed=0)
    importance = decider.importance(problem, pasts) if space else {}
    return RunImportance(figure, direction, len(rows), [dimension.name for dimension in space], importance)


def _range(name: str, values: Sequence[Any]) -> Range | None:
    """Return the range of a parameter's values; None if they are all equal, or if there are too many choices."""
    if len(set(map(str, values))) < 2:
        return None
    if all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        low, high = float(min(values)), float(max(values))
        return Range(name, FLOAT, low=low, high=high, log=low > 0 and high / low >= BY_MAGNITUDE)
    choices = tuple(sorted(set(map(str, values))))
    return Range(name, CHOICE, choices=choices) if len(choices) <= MAX_CHOICES else None


def _value(among: Range | None, value: Any) -> Any:
    return str(value) if among is not None and among.kind == CHOICE else float(value)
