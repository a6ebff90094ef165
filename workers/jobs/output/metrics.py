"""Curves of a job: ingested from metrics.jsonl exactly once, returned in at most so many points.

Points lie in files (`point_files.py`), a row for each curve says how many of them count and what they amount to.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import QuerySet

from aiplatform.lib import files
from aiplatform.lib.numbers import finite, real
from workers.core import live
from workers.core.clock import now
from workers.core.models import Attempt, Curve, Figures, Job
from workers.core.runs import RunDir
from workers.jobs.output import curve_rows, job_progress, metric_names, point_files
from workers.jobs.output.curve_rows import Point
from workers.jobs.output.job_progress import JobProgress
from workers.jobs.output.point_files import Points
from workers.jobs.output.reporting import naming
from workers.jobs.output.reporting.harvest import Source

CHUNK = 1024 * 1024
AT_ONCE = 4 * CHUNK
"""Most bytes taken in by one call: a program that never stops reporting must not hold up the agent."""
MAX_BYTES = 256 * CHUNK
"""What a program reports beyond is not taken in: curves are no place for data."""
MAX_LINE_BYTES = 64 * 1024
MAX_KEYS = 200
MAX_POINTS = 2000
MAX_STEP = 2**62
EVENT_FILES = "events:"  # source of curves from TensorBoard's files, see naming.py
_ABOUT = {"step", "time", *job_progress.KEYS}  # describe the line or the job and are no curves


def ingest(attempt: Attempt, *, at_most: int = AT_ONCE) -> int:
    """Take in what the program reported since the last call; return how many points.

    The byte position is saved in the transaction that saves the points, by compare-and-set: however
    often and by whomever this is called, each line counts once. A line that is not complete yet waits;
    one that is no JSON object, or too long, is passed over.

    Args:
        at_most: bytes to take in before the rest waits for the next call.
    """
    taken, heard, enough = 0, False, min(attempt.metrics_cursor + at_most, MAX_BYTES)
    while (cursor := attempt.metrics_cursor) < enough:
        data = _read(attempt, cursor)
        if not data:
            break
        added = _save(attempt, cursor, data)
        if added is None:  # another caller was faster
            attempt.refresh_from_db(fields=["metrics_cursor"])
            continue
        taken, heard = taken + added, True
    if heard:  # where it stands is news too
        live.nudge(attempt.job_id)
    return taken


def has_figures(job: Job) -> bool:
    """Whether the program of its newest attempt reported any figure; what it uses does not count."""
    return _curves_of(job, job.attempt_number).exclude(key__startswith="system/").exists()


def record_system(
    attempt: Attempt, figures: Mapping[str, float], *, at: datetime | None = None, node: int | None = None
) -> None:
    """Add one sample of what the job uses (`system/cpu`, …). The step is seconds since the attempt began.

    Args:
        node: which node of a gang, from 1; its curves are named `system/node2/cpu`.
    """
    if node is not None:
        figures = {f"system/node{node}/{key.removeprefix('system/')}": value for key, value in figures.items()}
    moment = at or now()
    step = max(0, int((moment - (attempt.started_at or attempt.assigned_at)).total_seconds()))
    add(attempt, [(key, step, value, moment) for key, value in figures.items() if math.isfinite(value)])
    live.nudge(attempt.job_id)


def add(attempt: Attempt, points: Iterable[Point], *, once: bool = False) -> None:
    """Add points that are not in metrics.jsonl.

    Args:
        once: leave out those that are among its newest already: whoever reports them may do so again.
    """
    curve_rows.add(curve_rows.of_attempt(attempt), points, once=once)


def _read(attempt: Attempt, cursor: int) -> bytes:
    """Whole lines from `cursor`, at most a chunk; a chunk without line end is given as it is, to be passed over."""
    try:
        metrics = RunDir.for_attempt(attempt.job_id, attempt.number).metrics
        with os.fdopen(files.open_beneath(metrics.parent, metrics.name), "rb") as file:  # a pipe would never answer
            file.seek(cursor)
            data = file.read(CHUNK)
    except (OSError, files.OutsideRoot):
        return b""
    end = data.rfind(b"\n") + 1
    return data[:end] if end or len(data) < CHUNK else data


def _save(attempt: Attempt, cursor: int, data: bytes) -> int | None:
    owner = curve_rows.of_attempt(attempt)
    with point_files.alone(attempt.job_id, attempt.number):
        unchanged = Attempt.objects.filter(pk=attempt.pk, metrics_cursor=cursor)
        step = unchanged.values_list("metrics_step", flat=True).first()
        if step is None:
            return None
        curves = Curve.objects.filter(attempt=attempt).exclude(key__startswith="system/")
        parsed = _Lines(set(curves.values_list("key", flat=True)), step, JobProgress.read(attempt.job_id))
        for line in data.split(b"\n"):
            parsed.add(line)
        changed = curve_rows.append(owner, parsed.points)
        with transaction.atomic():
            if not unchanged.update(metrics_cursor=cursor + len(data), metrics_step=parsed.step):
                return None
            curve_rows.save(owner, changed)
            if parsed.has_progress:
                parsed.progress.save(attempt.job_id, attempt.number)
    attempt.metrics_cursor = cursor + len(data)
    return len(parsed.points)


def append_from(
    attempt: Attempt, points_by_source: Mapping[Source, Iterable[tuple[str, int, float, float]]]
) -> list[Figures]:
    """Write points of files (name, step, value, unix time) behind those that count; return the rows, for `save`.

    Each key has one source (`naming.py`): what another has already is left out.
    """
    rows = Curve.objects.filter(attempt=attempt).values_list("key", "source")
    owners = {key: "" if key.startswith("system/") else source for key, source in rows}
    max_keys, points = MAX_KEYS + sum(key.startswith("system/") for key in owners), []
    for source, own in points_by_source.items():
        keys: dict[str, str | None] = {}
        for name, step, value, at in own:
            if name not in keys:
                key = keys[name] = naming.key(source, name, owners)
                if key is not None and key not in owners:
                    if len(owners) >= max_keys:
                        keys[name] = None
                    else:
                        owners[key] = str(source)
            if (key := keys[name]) is not None:
                points.append((key, step, value, _moment(at)))
    return curve_rows.append(curve_rows.of_attempt(attempt), points, sources=owners)


def save(attempt: Attempt, changed: Sequence[Figures]) -> None:
    """Let written points count; called within the transaction that records the ingestion."""
    curve_rows.save(curve_rows.of_attempt(attempt), changed)


class _Lines:
    """Points of the lines seen so far, and the progress that they report."""

    def __init__(self, keys: set[str], step: int, progress: JobProgress) -> None:
        self.keys, self.step, self.progress = keys, step, progress
        self.points: list[Point] = []
        self.has_progress = False

    def add(self, line: bytes) -> None:
        if not line.strip() or len(line) > MAX_LINE_BYTES:
            return
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(row, dict):
            return
        self.step = _step(row.get("step"), self.step + 1)
        at = _moment(row.get("time"))
        self.has_progress = self.has_progress or bool(job_progress.KEYS & row.keys())
        self.progress.apply(row)
        for key, value in row.items():
            number = real(value)
            if number is None:
                continue
            if key not in _ABOUT and (named := metric_names.key_of(key)):
                self._point(named, number, at)

    def _point(self, key: str, number: float, at: datetime) -> None:
        if key not in self.keys and len(self.keys) >= MAX_KEYS:
            return
        self.keys.add(key)
        self.points.append((key, self.step, number, at))


def _step(value: Any, otherwise: int) -> int:
    number = finite(value)
    return otherwise if number is None or abs(number) > MAX_STEP else int(number)


def _moment(value: Any) -> datetime:
    number = finite(value)
    try:
        return datetime.fromtimestamp(number, UTC) if number else now()
    except (ValueError, OverflowError, OSError):
        return now()


@dataclass
class Curves:
    """Curves of one attempt. `series` holds (step, value) by key, `times` the unix seconds of these points.

    A value that is NaN or infinite is None.
    """

    attempt: int
    attempts: list[int]
    keys: list[str]
    series: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    newest: dict[str, dict[str, float | None]] = field(default_factory=dict)
    last_id: int = 0


def curves(
    job: Job, *, attempt: int | None = None, keys: Sequence[str] | None = None, max_points: int = MAX_POINTS
) -> Curves:
    """Curves of an attempt, the newest by default, thinned to `max_points` (2 to 2,000) per key.

    Thinning keeps the lowest and the highest value of each stretch, so spikes stay visible. `last_id` is how many
    points the attempt has.
    """
    attempts = list(job.attempts.order_by("number").values_list("number", flat=True))
    number = attempt or job.attempt_number
    result = Curves(number, attempts, [])
    for curve in _curves_of(job, number).order_by("key"):
        result.keys.append(curve.key)
        result.last_id += curve.count
        if keys is not None and curve.key not in keys:
            continue
        points = point_files.read(point_files.path(job.pk, number, curve.key), curve.count)
        if curve.source.startswith(EVENT_FILES):
            points = without_repeated(points)
        elif (np.diff(points["step"]) < 0).any():
            points = points[np.argsort(points["step"], kind="stable")]
        thinned = thin(points, max(2, min(max_points, MAX_POINTS)))
        result.series[curve.key] = list(zip(thinned["step"].tolist(), _values(thinned), strict=True))
        result.times[curve.key] = thinned["at"].tolist()
        result.newest[curve.key] = {"step": curve.step, "value": curve.value if curve.has_value else None}
    return result


def without_repeated(points: Points) -> Points:
    """Points of event files without those that a resumed run reported again, as TensorBoard shows them.

    A step that is not higher than the ones before means that the program went back to it: what was reported from
    there on does not count any more.
    """
    if len(points) < 2:
        return points
    lowest_after = np.minimum.accumulate(points["step"][::-1])[::-1][1:]
    return points[np.append(points["step"][:-1] < lowest_after, True)]


def thin(points: Points, limit: int) -> Points:
    """At most `limit` of the points: per stretch the lowest and the highest, in order; both ends stay.

    Of NaN and infinite values the first of each stretch stays, so that gaps stay visible.
    """
    if len(points) <= limit:
        return points
    if limit <= 4:
        return points[[0, -1]]
    inner = points["value"][1:-1]
    gaps = np.flatnonzero(~np.isfinite(inner))
    stretches = max(1, (limit - 2) // (3 if len(gaps) else 2))
    bounds = np.arange(stretches + 1) * len(inner) // stretches
    low, high = (np.where(np.isfinite(inner), inner, out) if len(gaps) else inner for out in (np.inf, -np.inf))
    indices = [0, len(points) - 1]
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if end > begin:
            indices += [1 + begin + int(low[begin:end].argmin()), 1 + begin + int(high[begin:end].argmax())]
    if len(gaps):
        firsts = np.searchsorted(gaps, bounds[:-1])
        indices += (1 + gaps[firsts[firsts < len(gaps)]]).tolist()
    return points[np.unique(indices)]


def only_finite(points: Points) -> Points:
    """Return the points without those that are NaN or infinite."""
    there = np.isfinite(points["value"])
    return points if there.all() else points[there]


def _values(points: Points) -> list[float | None]:
    """Values as JSON can hold them."""
    return [value if math.isfinite(value) else None for value in points["value"].tolist()]


def since(
    job: Job, known_counts: Mapping[str, int], *, limit: int = MAX_POINTS
) -> tuple[dict[str, list[list[float | None]]] | None, dict[str, int]]:
    """New points of the newest attempt: ({key: [[step, value, unix]]}, the new counts); NaN and infinity are None.

    They are None where there are more than `limit`, and read at once by whoever needs them. A part of them would make
    counts that the rows never had, and two that know equally many points would not know the same ones.

    Args:
        known: how many points of each key are known.
    """
    new_counts = counts(job)
    if sum(new_counts.values()) - sum(known_counts.values()) > limit:
        return None, new_counts
    points_by_key: dict[str, list[list[float | None]]] = {}
    for key, count in new_counts.items():
        if count > (first := known_counts.get(key, 0)):
            points = point_files.read(point_files.path(job.pk, job.attempt_number, key), count, first=first)
            rows = zip(points["step"].tolist(), _values(points), points["at"].tolist(), strict=True)
            points_by_key[key] = [[*row] for row in rows]
    return points_by_key, new_counts


def counts(job: Job) -> dict[str, int]:
    """How many points each key of the newest attempt has now."""
    return dict(_curves_of(job, job.attempt_number).order_by("key").values_list("key", "count"))


def recent(attempt: Attempt, keys: Iterable[str], since: datetime) -> dict[str, Points]:
    """Finite points of some keys that were reported after a moment."""
    points_by_key = {}
    for curve in Curve.objects.filter(attempt=attempt, key__in=keys, at__gt=since):
        points = point_files.read(point_files.path(attempt.job_id, attempt.number, curve.key), curve.count)
        points_by_key[curve.key] = only_finite(points[points["at"] > since.timestamp()])
    return points_by_key


def _curves_of(job: Job, number: int) -> QuerySet[Curve]:
    return Curve.objects.filter(attempt__job=job, attempt__number=number)
