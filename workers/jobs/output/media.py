"""What programs show besides curves: kept within bounds, and read again.

Rows hold facts, files hold images, tables, graphs and points of vectors, in a folder beside the attempt's curves. Of a
series of many steps every second one goes when it is full, so that begin and end stay; the row says how many came.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Min, QuerySet, Sum

from aiplatform.lib import files
from workers.core.clock import now
from workers.core.models import Attempt, Job, MediaItem, MediaSeries, ReportFile
from workers.jobs.output import point_files
from workers.jobs.output.reporting import pictures
from workers.jobs.output.reporting.harvest import Shown

K = MediaSeries.Kind
MOST_STEPS = {K.IMAGE: 60, K.HISTOGRAM: 120, K.TEXT: 100, K.TABLE: 50, K.GRAPH: 1, K.VECTORS: 10, K.PARAMS: 1}
MOST_SERIES = {K.IMAGE: 100, K.HISTOGRAM: 300, K.TEXT: 100, K.TABLE: 50, K.GRAPH: 5, K.VECTORS: 10, K.PARAMS: 1}
MOST_BYTES = 256 * 1024 * 1024
"""Files of one attempt. What comes later is counted and not kept."""
CONTENT_TYPES = {"png": "image/png", "jpg": "image/jpeg", "json": "application/json"}


@dataclass
class _Made:
    """One thing that is to be kept: its file lies there already."""

    shown: Shown
    facts: dict[str, Any]
    file: str = ""
    size_bytes: int = 0


@dataclass
class Kept:
    """What `prepare` wrote and `save` lets count. `nameless`: how many had no room even for their name."""

    attempt: Attempt
    made: list[_Made]
    refused: Counter[tuple[str, str]]
    nameless: int = 0


def folder(job_id: int, number: int) -> Path:
    """Return where the files of an attempt's media lie."""
    return point_files.folder(job_id, number) / "media"


def prepare(attempt: Attempt, shown: Iterable[Shown]) -> Kept:
    """Write the files of what a program shows. Nothing counts before `save`; done twice it does the same."""
    rows = MediaItem.objects.filter(series__attempt=attempt)
    used = rows.aggregate(total=Sum("size_bytes"))["total"] or 0
    known = set(MediaSeries.objects.filter(attempt=attempt).values_list("kind", "name"))
    kept = Kept(attempt, [], Counter())
    for one in shown:
        series = (one.kind, one.name)
        fits = series in known or sum(kind == one.kind for kind, _ in known) < MOST_SERIES[K(one.kind)]
        made = _written(attempt, one, MOST_BYTES - used) if fits else None
        if made is not None:
            known.add(series)
            used += made.size_bytes
            kept.made.append(made)
        elif series in known:
            kept.refused[series] += 1
        else:
            kept.nameless += 1
    return kept


def _written(attempt: Attempt, shown: Shown, room: int) -> _Made | None:
    facts, data, suffix = dict(shown.facts), shown.data, "json"
    if shown.kind == K.IMAGE:
        picture = pictures.read(data)
        if picture is None:
            return None
        facts |= {"width": picture.original[0], "height": picture.original[1]}
        data, suffix = picture.data, picture.suffix
    if not data:
        return _Made(shown, facts)
    if len(data) > room:
        return None
    about = f"{shown.kind}\0{shown.name}\0{shown.step}\0".encode("utf-8", "replace")
    name = f"{hashlib.sha256(about + data).hexdigest()[:40]}.{suffix}"
    place = folder(attempt.job_id, attempt.number)
    place.mkdir(parents=True, exist_ok=True)
    if not (place / name).exists():
        files.write_atomically(place / name, data)
    return _Made(shown, facts, name, len(data))


def save(kept: Kept) -> None:
    """Let what was prepared count; called within the transaction that says that it was taken in."""
    known = {(row.kind, row.name): row for row in MediaSeries.objects.filter(attempt=kept.attempt)}
    by_series: dict[tuple[str, str], list[_Made]] = {}
    for made in kept.made:
        by_series.setdefault((made.shown.kind, made.shown.name), []).append(made)
    for key, own in by_series.items():
        series = known.get(key)
        if series is None:
            series = known[key] = MediaSeries.objects.create(attempt=kept.attempt, kind=key[0], name=key[1])
        _add(series, own)
    for key, count in kept.refused.items():
        MediaSeries.objects.filter(pk=known[key].pk).update(refused=F("refused") + count)


def _add(series: MediaSeries, own: Sequence[_Made]) -> None:
    """Add steps; one that is there already is written over. A full series keeps every second step from then on."""
    most, doomed, added = MOST_STEPS[K(series.kind)], [], []
    newest = {made.shown.step: made for made in own}
    before = {row.step: row for row in series.items.filter(step__in=newest)}
    for step, made in newest.items():
        columns = {"at": _moment(made.shown.at), "file": made.file, "size_bytes": made.size_bytes, "facts": made.facts}
        if (row := before.get(step)) is not None:
            doomed += [row.file] if row.file != made.file else []
            MediaItem.objects.filter(pk=row.pk).update(**columns)
            continue
        if series.seen % series.stride == 0 or most == 1:
            added.append(MediaItem(series=series, number=series.seen, step=step, **columns))
        else:
            doomed.append(made.file)
        series.seen += 1
    MediaItem.objects.bulk_create(added, batch_size=100)
    doomed += _thinned(series, most)
    series.save(update_fields=["seen", "stride"])
    if any(doomed):
        place = folder(series.attempt.job_id, series.attempt.number)
        transaction.on_commit(lambda: _remove(place, filter(None, doomed)), robust=True)


def _thinned(series: MediaSeries, most: int) -> list[str]:
    """Make a series as short as it may be; return the files of what went."""
    if series.items.count() <= most:
        return []
    kept, gone = list(series.items.order_by("number")), []
    while len(kept) > most:
        if most == 1:
            out = kept[:-1]
        else:
            series.stride *= 2
            out = [row for row in kept if row.number % series.stride]
        gone += out
        kept = [row for row in kept if row not in out]
    MediaItem.objects.filter(pk__in=[row.pk for row in gone]).delete()
    return [row.file for row in gone]


def _remove(place: Path, names: Iterable[str]) -> None:
    for name in names:
        (place / name).unlink(missing_ok=True)


def _moment(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC) if at > 0 else now()
    except (ValueError, OverflowError, OSError):
        return now()


# Reading it again. -------------------------------------------------------------------------------------------------


def series_of(job: Job, *, attempt: int | None = None, kind: str = "") -> QuerySet[Any]:
    """The series of an attempt, the newest by default, with `steps`, `first_step` and `last_step` of what is kept."""
    rows = MediaSeries.objects.filter(attempt__job=job, attempt__number=attempt or job.attempt_number)
    rows = rows.filter(kind=kind) if kind else rows
    counted = rows.annotate(steps=Count("items"), first_step=Min("items__step"), last_step=Max("items__step"))
    return counted.order_by("kind", "name")


def items_of(job: Job, *, attempt: int | None = None) -> QuerySet[MediaItem]:
    """All that is kept of an attempt, the newest by default."""
    rows = MediaItem.objects.filter(series__attempt__job=job, series__attempt__number=attempt or job.attempt_number)
    return rows.select_related("series")


def item_of(job: Job, number: int) -> MediaItem | None:
    """One item of any attempt, None where the job has no such."""
    return MediaItem.objects.filter(series__attempt__job=job, pk=number).select_related("series__attempt").first()


def kinds_of(jobs: Iterable[Job]) -> dict[str, int]:
    """How many series of each kind the newest attempts of some jobs have."""
    found: dict[str, int] = {}
    for job in jobs:
        for kind, count in (
            series_of(job).values_list("kind").annotate(many=Count("pk", distinct=True)).order_by("kind")
        ):
            found[kind] = found.get(kind, 0) + count
    return found


def open_file(item: MediaItem) -> int:
    """Descriptor of the file of an item.

    Raises:
        FileNotFoundError: it has none.
    """
    attempt = item.series.attempt
    if not item.file:
        raise FileNotFoundError
    return files.open_beneath(folder(attempt.job_id, attempt.number), item.file)


def missed(job: Job, *, attempt: int | None = None) -> dict[str, int]:
    """What was not kept of an attempt's files, by code."""
    total: dict[str, int] = {}
    rows = ReportFile.objects.filter(attempt__job=job, attempt__number=attempt or job.attempt_number)
    for each in rows.exclude(missed={}).values_list("missed", flat=True):
        for code, count in each.items():
            total[code] = total.get(code, 0) + count
    return total


def reported_params(job: Job) -> dict[str, Any]:
    """Hyper-parameters that the program itself named, of the newest attempt that did."""
    rows = MediaItem.objects.filter(series__attempt__job=job, series__kind=K.PARAMS)
    facts = rows.order_by("-series__attempt__number", "-step").values_list("facts", flat=True).first()
    values = (facts or {}).get("values")
    return dict(values) if isinstance(values, dict) else {}
