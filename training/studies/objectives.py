"""What a study wants: curves to make low or high, and when a trial is not worth going on. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals

MAX_OBJECTIVES = 3
MINIMIZE, MAXIMIZE = "minimize", "maximize"
LAST, BEST = "last", "best"
MEDIAN, ASHA = "median", "asha"
_KEY = re.compile(r"[A-Za-z0-9_][\w./ @%()+-]{0,59}\Z", re.ASCII)


@dataclass(frozen=True)
class Objective:
    """A curve by its key, whether low or high is good, and whether its last or its best value counts."""

    key: str
    direction: str = MINIMIZE
    take: str = LAST

    def better(self, value: float, other: float) -> bool:
        """Return whether `value` is better than `other`."""
        return value < other if self.direction == MINIMIZE else value > other

    def reaches(self, value: float, target: float) -> bool:
        return not self.better(target, value)


@dataclass(frozen=True)
class Pruner:
    """When a trial ends early; all counts are points of the curve of the objective.

    Attributes:
        name: "median": worse than half of the completed ones at the same point; "asha": only every `factor`-th goes on
            beyond point `warmup`, `warmup`·factor, `warmup`·factor² …
        startup: completed trials before the first one is pruned (median).
        warmup: points that every trial may have; with the last of them it is judged first.
        factor: of ASHA.
    """

    name: str
    startup: int = 5
    warmup: int = 1
    factor: int = 3


def read(items: Iterable[Any]) -> list[Objective]:
    """Return the objectives of a request, which are rows or only keys.

    Raises:
        Invalid: with everything that is wrong.
    """
    rows, refusals, objectives = list(items), Refusals(), []
    with refusals:
        if not 0 < len(rows) <= MAX_OBJECTIVES:
            raise Invalid(_("Specify 1 to %(most)s objectives.") % {"most": MAX_OBJECTIVES}, field="objectives")
    for row in rows[:MAX_OBJECTIVES]:
        with refusals:
            objectives.append(_read_objective(row))
    with refusals:
        if len({objective.key for objective in objectives}) < len(objectives):
            raise Invalid(_("Each objective must have a different metric."), field="objectives")
    refusals.end()
    return objectives


def _read_objective(row: Any) -> Objective:
    row = {"key": row} if isinstance(row, str) else row
    if not isinstance(row, Mapping) or not set(row) <= {"key", "direction", "take"}:
        raise Invalid(_("An objective requires a key, a direction, and take."), field="objectives")
    key = row.get("key")
    if not isinstance(key, str) or not _KEY.match(key.strip()):
        message = _("The key of an objective must be the name of a metric, for example val/accuracy.")
        raise Invalid(message, field="objectives")
    objective = Objective(key.strip(), row.get("direction") or usual_direction(key), row.get("take") or LAST)
    if objective.direction not in (MINIMIZE, MAXIMIZE):
        raise Invalid(_("The direction of an objective must be minimize or maximize."), field="objectives")
    if objective.take not in (LAST, BEST):
        raise Invalid(_("take must be last or best."), field="objectives")
    return objective


def usual_direction(key: str) -> str:
    """Return the usual direction of a curve of this name."""
    low = ("loss", "error", "err", "rmse", "mse", "mae", "perplexity", "time", "seconds", "size", "ms")
    tokens = re.split(r"[^a-z0-9]+", key.lower())
    return MINIMIZE if any(word in low for word in tokens) else MAXIMIZE


def of_rows(rows: Iterable[Mapping[str, Any]]) -> list[Objective]:
    """The objectives that a row of a study keeps."""
    return [Objective(**row) for row in rows]


def as_rows(objectives: Sequence[Objective]) -> list[dict[str, Any]]:
    return [asdict(objective) for objective in objectives]


def read_pruner(config: Any) -> Pruner | None:
    """Return the pruner of a request, or None.

    Raises:
        Invalid: an unknown one, or a count that is none.
    """
    if config in (None, "", "none", {}):
        return None
    row = {"name": config} if isinstance(config, str) else config
    if not isinstance(row, Mapping) or row.get("name") not in (MEDIAN, ASHA, "none"):
        raise Invalid(_("The pruner must be none, median or asha."), field="pruner")
    if row["name"] == "none":
        return None
    names = {attribute.name for attribute in fields(Pruner)}
    unknown = [str(name)[:40] for name in row if name not in names]
    if unknown:
        facts = {"field": unknown[0], "fields": ", ".join(sorted(names))}
        raise Invalid(_("A pruner has no %(field)s. Available fields: %(fields)s.") % facts, field="pruner")
    counts: dict[str, Any] = {name: value for name, value in row.items() if name != "name"}
    least = {"startup": 0, "warmup": 1, "factor": 2}
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or not least[name] <= value <= 1000:
            bounds: dict[str, Any] = {"name": name, "least": least[name]}
            raise Invalid(_("%(name)s must be an integer from %(least)s to 1000.") % bounds, field="pruner")
    return Pruner(row["name"], **counts)


def of_row(row: Mapping[str, Any]) -> Pruner | None:
    """The pruner that a row of a study keeps."""
    return Pruner(**row) if row else None


def is_finite(values: Sequence[float | None]) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)
