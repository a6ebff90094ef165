"""Curves of a job: ingested from metrics.jsonl exactly once, returned in at most so many points."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from aiplatform.lib import files
from aiplatform.lib.numbers import finite
from workers import live
from workers.clock import now
from workers.models import Attempt, Job, MetricPoint
from workers.runs import RunDir
from workers.states import JobPhase

CHUNK = 1024 * 1024
AT_ONCE = 4 * CHUNK
"""Most bytes taken in by one call: a program that never stops reporting must not hold up the agent."""
MOST_BYTES = 256 * CHUNK
"""What a program reports beyond is not taken in: curves are no place for data."""
LONGEST_LINE = 64 * 1024
MOST_KEYS = 200
MOST_POINTS = 2000
MAX_STEP = 2**62
_KEY = re.compile(r"[A-Za-z0-9_][\w./ @%()+-]{0,59}\Z", re.ASCII)
_ABOUT = {"step", "time", "progress", "eta_s", "phase"}  # say where the line stands, are no curves


def ingest(attempt: Attempt, *, at_most: int = AT_ONCE) -> int:
    """Take in what the program reported since the last call; return how many points.

    The byte position is saved in the transaction that saves the points, by compare-and-set: however
    often and by whomever this is called, each line counts once. A line that is not complete yet waits;
    one that is no JSON object, or too long, is passed over.

    Args:
        at_most: bytes to take in before the rest waits for the next call.
    """
    taken, heard, enough = 0, False, min(attempt.metrics_cursor + at_most, MOST_BYTES)
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
    points = MetricPoint.objects.filter(attempt__job=job, attempt__number=job.attempt_number)
    return points.exclude(key__startswith="system/").exists()


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
    MetricPoint.objects.bulk_create(
        MetricPoint(attempt=attempt, key=key, step=step, value=value, at=moment)
        for key, value in figures.items()
        if math.isfinite(value)
    )
    live.nudge(attempt.job_id)


def _read(attempt: Attempt, cursor: int) -> bytes:
    """Whole lines from `cursor`, at most a chunk; a chunk without line end is given as it is, to be passed over."""
    try:
        metrics = RunDir.of(attempt.job_id, attempt.number).metrics
        with os.fdopen(files.open_beneath(metrics.parent, metrics.name), "rb") as file:  # a pipe would never answer
            file.seek(cursor)
            data = file.read(CHUNK)
    except (OSError, files.OutsideRoot):
        return b""
    end = data.rfind(b"\n") + 1
    return data[:end] if end or len(data) < CHUNK else data


def _save(attempt: Attempt, cursor: int, data: bytes) -> int | None:
    own = MetricPoint.objects.filter(attempt=attempt).exclude(key__startswith="system/")
    known = set(own.values_list("key", flat=True).distinct())
    last = own.order_by("-id").first()
    parsed = _Lines(known, step=last.step if last else 0)
    for line in data.split(b"\n"):
        parsed.add(line)
    with transaction.atomic():
        mine = Attempt.objects.filter(pk=attempt.pk, metrics_cursor=cursor)
        if not mine.update(metrics_cursor=cursor + len(data)):
            return None
        MetricPoint.objects.bulk_create(
            [
                MetricPoint(attempt=attempt, key=key, step=step, value=value, at=at)
                for key, step, value, at in parsed.points
            ],
            batch_size=500,
        )
        if parsed.about:
            Job.objects.filter(pk=attempt.job_id, attempt_number=attempt.number).update(**parsed.about)
    attempt.metrics_cursor = cursor + len(data)
    return len(parsed.points)


class _Lines:
    """Points of the lines seen so far, and the newest progress."""

    def __init__(self, keys: set[str], step: int) -> None:
        self.keys, self.step = keys, step
        self.points: list[tuple[str, int, float, datetime]] = []
        self.about: dict[str, float | str] = {}

    def add(self, line: bytes) -> None:
        if not line.strip() or len(line) > LONGEST_LINE:
            return
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(row, dict):
            return
        self.step = _step(row.get("step"), self.step + 1)
        at = _moment(row.get("time"))
        if row.get("phase") in JobPhase.values:
            self.about["phase"] = row["phase"]
        for key, value in row.items():
            number = finite(value)
            if number is None:
                continue
            if key == "progress":
                self.about["progress"] = min(1.0, max(0.0, number))
            elif key == "eta_s":
                self.about["eta_s"] = max(0.0, number)
            elif key not in _ABOUT and _KEY.match(key) and not key.startswith("system/"):
                self._point(key, number, at)

    def _point(self, key: str, number: float, at: datetime) -> None:
        if key not in self.keys and len(self.keys) >= MOST_KEYS:
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
    """Curves of one attempt. `series` holds (step, value) by key, `times` the unix seconds beside them."""

    attempt: int
    attempts: list[int]
    keys: list[str]
    series: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    newest: dict[str, dict[str, float]] = field(default_factory=dict)
    last_id: int = 0


def curves(
    job: Job, *, attempt: int | None = None, keys: Sequence[str] | None = None, max_points: int = MOST_POINTS
) -> Curves:
    """Curves of an attempt, the newest by default, thinned to `max_points` (2 to 2,000) per key.

    Thinning keeps the lowest and the highest value of each stretch, so spikes stay visible.
    """
    attempts = list(job.attempts.order_by("number").values_list("number", flat=True))
    number = attempt or job.attempt_number
    found = Curves(number, attempts, [])
    rows = MetricPoint.objects.filter(attempt__job=job, attempt__number=number)
    found.keys = sorted(rows.values_list("key", flat=True).distinct())
    wanted = [key for key in found.keys if keys is None or key in keys]
    for key in wanted:
        points = list(rows.filter(key=key).order_by("step", "id").values_list("id", "step", "value", "at"))
        found.last_id = max(found.last_id, *(point[0] for point in points))
        kept = thin(points, max(2, min(max_points, MOST_POINTS)))
        found.series[key] = [(step, value) for _, step, value, _ in kept]
        found.times[key] = [at.timestamp() for *_, at in kept]
        found.newest[key] = {"step": points[-1][1], "value": points[-1][2]}
    return found


def thin(points: Sequence[tuple[int, int, float, datetime]], most: int) -> list[tuple[int, int, float, datetime]]:
    """At most `most` of (id, step, value, at): per stretch the lowest and the highest, in order; both ends stay."""
    if len(points) <= most:
        return list(points)
    inner, stretches = points[1:-1], max(1, (most - 2) // 2)
    kept = [points[0]]
    for stretch in range(stretches):
        part = inner[len(inner) * stretch // stretches : len(inner) * (stretch + 1) // stretches]
        if part:
            low = min(range(len(part)), key=lambda i: part[i][2])
            high = max(range(len(part)), key=lambda i: part[i][2])
            kept.extend(part[i] for i in sorted({low, high}))
    kept.append(points[-1])
    return kept[:1] + kept[-1:] if most == 2 else kept


def since(job: Job, last_id: int, *, limit: int = MOST_POINTS) -> tuple[dict[str, list[list[float]]], int]:
    """New points of the newest attempt after row `last_id`: ({key: [[step, value, unix]]}, new last id)."""
    rows = MetricPoint.objects.filter(attempt__job=job, attempt__number=job.attempt_number, id__gt=last_id).order_by(
        "id"
    )
    found: dict[str, list[list[float]]] = {}
    for pk, key, step, value, at in rows.values_list("id", "key", "step", "value", "at")[:limit]:
        found.setdefault(key, []).append([step, value, at.timestamp()])
        last_id = pk
    return found, last_id


def newest_id(job: Job) -> int:
    """Row number up to which points of the newest attempt exist now; 0 without points."""
    rows: Iterable[int] = (
        MetricPoint.objects.filter(attempt__job=job, attempt__number=job.attempt_number)
        .order_by("-id")
        .values_list("id", flat=True)[:1]
    )
    return next(iter(rows), 0)
