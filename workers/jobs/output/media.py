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
MAX_STEPS = {
    K.IMAGE: 60, K.FIGURE: 20, K.AUDIO: 40, K.VIDEO: 20, K.HISTOGRAM: 120, K.TEXT: 100, K.TABLE: 50, K.GRAPH: 1,
    K.VECTORS: 10, K.PARAMS: 1,
}  # fmt: skip
MAX_SERIES = {
    K.IMAGE: 100, K.FIGURE: 20, K.AUDIO: 50, K.VIDEO: 20, K.HISTOGRAM: 300, K.TEXT: 100, K.TABLE: 50, K.GRAPH: 5,
    K.VECTORS: 10, K.PARAMS: 1,
}  # fmt: skip
MAX_BYTES = 256 * 1024 * 1024
"""Files of one attempt. What comes later is counted and not kept."""
CONTENT_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "json": "application/json", "html": "text/html",
    "wav": "audio/wav", "mp3": "audio/mpeg", "ogg": "audio/ogg", "flac": "audio/flac",
    "mp4": "video/mp4", "webm": "video/webm",
}  # fmt: skip


@dataclass
class _Made:
    """An item to store: its file is written already."""

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
    """Write the files of shown media. They count only after `save`; repeating it changes nothing."""
    rows = MediaItem.objects.filter(series__attempt=attempt)
    used = rows.aggregate(total=Sum("size_bytes"))["total"] or 0
    series_keys = set(MediaSeries.objects.filter(attempt=attempt).values_list("kind", "name"))
    prepared = Kept(attempt, [], Counter())
    for item in shown:
        series = (item.kind, item.name)
        fits = series in series_keys or sum(kind == item.kind for kind, _ in series_keys) < MAX_SERIES[K(item.kind)]
        written = _written(attempt, item, MAX_BYTES - used) if fits else None
        if written is not None:
            series_keys.add(series)
            used += written.size_bytes
            prepared.made.append(written)
        elif series in series_keys:
            prepared.refused[series] += 1
        else:
            prepared.nameless += 1
    return prepared


def _written(attempt: Attempt, shown: Shown, room: int) -> _Made | None:
    facts, data, suffix = dict(shown.facts), shown.data, "json"
    if shown.kind == K.IMAGE:
        picture = pictures.read(data)
        if picture is None:
            return None
        facts |= {"width": picture.original[0], "height": picture.original[1]}
        data, suffix = picture.data, picture.suffix
    elif "format" in facts:  # kept as it came
        suffix = facts["format"]
    if not data:
        return _Made(shown, facts)
    if len(data) > room:
        return None
    prefix = f"{shown.kind}\0{shown.name}\0{shown.step}\0".encode("utf-8", "replace")
    name = f"{hashlib.sha256(prefix + data).hexdigest()[:40]}.{suffix}"
    directory = folder(attempt.job_id, attempt.number)
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / name).exists():
        files.write_atomically(directory / name, data)
    return _Made(shown, facts, name, len(data))


def save(prepared: Kept) -> None:
    """Let prepared media count; called within the transaction that records the ingestion."""
    series_rows = {(row.kind, row.name): row for row in MediaSeries.objects.filter(attempt=prepared.attempt)}
    by_series: dict[tuple[str, str], list[_Made]] = {}
    for item in prepared.made:
        by_series.setdefault((item.shown.kind, item.shown.name), []).append(item)
    for key, own in by_series.items():
        series = series_rows.get(key)
        if series is None:
            series = series_rows[key] = MediaSeries.objects.create(attempt=prepared.attempt, kind=key[0], name=key[1])
        _add(series, own)
    for key, count in prepared.refused.items():
        MediaSeries.objects.filter(pk=series_rows[key].pk).update(refused=F("refused") + count)


def _add(series: MediaSeries, own: Sequence[_Made]) -> None:
    """Add steps; an existing one is overwritten. A full series keeps every second step from then on."""
    limit, doomed, added = MAX_STEPS[K(series.kind)], [], []
    newest = {item.shown.step: item for item in own}
    before = {row.step: row for row in series.items.filter(step__in=newest)}
    for step, item in newest.items():
        columns = {"at": _moment(item.shown.at), "file": item.file, "size_bytes": item.size_bytes, "facts": item.facts}
        if (row := before.get(step)) is not None:
            doomed += [row.file] if row.file != item.file else []
            MediaItem.objects.filter(pk=row.pk).update(**columns)
            continue
        if series.seen % series.stride == 0 or limit == 1:
            added.append(MediaItem(series=series, number=series.seen, step=step, **columns))
        else:
            doomed.append(item.file)
        series.seen += 1
    MediaItem.objects.bulk_create(added, batch_size=100)
    doomed += _thinned(series, limit)
    series.save(update_fields=["seen", "stride"])
    if any(doomed):
        directory = folder(series.attempt.job_id, series.attempt.number)
        transaction.on_commit(lambda: _remove(directory, filter(None, doomed)), robust=True)


def _thinned(series: MediaSeries, limit: int) -> list[str]:
    """Shorten a series to its limit; return the files of the removed steps."""
    if series.items.count() <= limit:
        return []
    rows, removed = list(series.items.order_by("number")), []
    while len(rows) > limit:
        if limit == 1:
            out = rows[:-1]
        else:
            series.stride *= 2
            out = [row for row in rows if row.number % series.stride]
        removed += out
        rows = [row for row in rows if row not in out]
    MediaItem.objects.filter(pk__in=[row.pk for row in removed]).delete()
    return [row.file for row in removed]


def _remove(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        (directory / name).unlink(missing_ok=True)


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
    counts: dict[str, int] = {}
    for job in jobs:
        for kind, count in (
            series_of(job).values_list("kind").annotate(many=Count("pk", distinct=True)).order_by("kind")
        ):
            counts[kind] = counts.get(kind, 0) + count
    return counts


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
