"""Rows of curves beside their files: points are added to both, whoever they belong to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.db import transaction

from workers.core.models import Attempt, Curve, Figures
from workers.jobs.output import point_files

MAX_KEPT_BYTES = 4 * 1024 * 1024
"""Points of a curve in its file. Of more only the newest, lowest and highest count: who looks reads all there are."""
LOOKED_BACK = 1000
"""Newest points of a curve among which one that is reported again is found."""
Point = tuple[str, int, float, datetime]  # key, step, value, when it was reported
Own = list[tuple[int, float, datetime]]  # of one key


@dataclass(frozen=True)
class Owner:
    """Whom curves belong to: the table of their rows, its column and value, and the folder of their files."""

    model: type[Figures]
    column: str
    pk: int
    folder: tuple[int | str, int]

    def rows(self, keys: Iterable[str]) -> dict[str, Figures]:
        """Rows of some of its keys, by key."""
        curves = self.model._default_manager.filter(**{f"{self.column}_id": self.pk}, key__in=list(keys))
        return {row.key: row for row in curves}

    def new(self, key: str) -> Figures:
        """The row of a key without points."""
        extremes = {"lowest": math.inf, "lowest_step": 0, "highest": -math.inf, "highest_step": 0}
        return self.model(**{f"{self.column}_id": self.pk, "key": key, "count": 0, "value": 0.0, **extremes})


def of_attempt(attempt: Attempt) -> Owner:
    """An attempt of a job as the owner of its curves."""
    return Owner(Curve, "attempt", attempt.pk, (attempt.job_id, attempt.number))


def add(owner: Owner, points: Iterable[Point], *, once: bool = False) -> None:
    """Add points to the curves of an owner.

    Args:
        once: leave out those that are among the newest of their curve already.
    """
    with point_files.alone(*owner.folder):
        changed = append(owner, points, once=once)
        with transaction.atomic():
            save(owner, changed)


def append(
    owner: Owner, points: Iterable[Point], *, once: bool = False, sources: Mapping[str, str] | None = None
) -> list[Figures]:
    """Write points behind those that count; return the changed rows, for `save`.

    Args:
        once: leave out those that are among the newest of their curve already.
        sources: of the keys, for curves of attempts; None is what the program reports itself, which takes a key from
            any file.
    """
    by_key: dict[str, Own] = {}
    for key, step, value, at in points:
        by_key.setdefault(key, []).append((step, value, at))
    curves = owner.rows(by_key)
    changed = []
    for key, reported in by_key.items():
        source, curve = (sources or {}).get(key, ""), curves.get(key)
        if curve is None or getattr(curve, "source", "") != source:
            curve = owner.new(key)
            if isinstance(curve, Curve):
                curve.source = source
        file = point_files.path(*owner.folder, key)
        own = _new_ones(reported, file, curve.count) if once else reported
        if not own:
            continue
        points_to_write = own[: max(0, MAX_KEPT_BYTES - curve.count)]
        point_files.write(file, curve.count, ((step, value, at.timestamp()) for step, value, at in points_to_write))
        had_value, finite = curve.has_value, [point for point in own if math.isfinite(point[1])]
        for step, value, _at in finite:
            if value < curve.lowest:
                curve.lowest, curve.lowest_step = value, step
            if value > curve.highest:
                curve.highest, curve.highest_step = value, step
        newest = max(finite, key=_place, default=None)
        if newest is None and not had_value:
            curve.step, _value, curve.at = own[-1]
        elif newest and (not had_value or _place((curve.step, curve.value, curve.at)) <= _place(newest)):
            curve.step, curve.value, curve.at = newest
        curve.count += len(points_to_write)
        changed.append(curve)
    return changed


def _place(point: tuple[int, float, datetime]) -> tuple[int, datetime, float]:
    """What decides which point is the latest: step, then time, then value, as in MLflow."""
    step, value, at = point
    return step, at, value


def save(owner: Owner, changed: Sequence[Figures]) -> None:
    """Save the rows that `append` returned, inside of a transaction."""
    columns = ["count", "step", "value", "at", "lowest", "lowest_step", "highest", "highest_step"]
    if owner.model is Curve:
        columns.append("source")
    owner.model._default_manager.bulk_create(
        changed, update_conflicts=True, unique_fields=[owner.column, "key"], update_fields=columns, batch_size=100
    )


def _new_ones(reported: Own, file: Path, count: int) -> Own:
    newest = point_files.read(file, count, first=max(0, count - LOOKED_BACK))
    existing = set(map(tuple, newest.tolist()))
    points = []
    for step, value, at in reported:
        point = (step, value, at.timestamp())
        if point not in existing:
            existing.add(point)
            points.append((step, value, at))
    return points
