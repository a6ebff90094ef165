"""Takes in what programs report in files of their own formats, exactly once.

A row for each file holds how far it was read (`workers.core.models.ReportFile`). It is saved in the transaction that
adds the points and media, by compare-and-set: a process that is killed anywhere leaves nothing, and the next one reads
the same part again. One process at a time adds to an attempt.
"""

from __future__ import annotations

import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path

from django.db import IntegrityError, transaction

from aiplatform.lib import files
from workers.core import live
from workers.core.models import Attempt, ReportFile
from workers.core.runs import RunDir
from workers.jobs.output import media, metrics, point_files
from workers.jobs.output.reporting import csv_files, events, json_lines, projector, sdk_media, trainer_state
from workers.jobs.output.reporting.finding import Search, reader_of
from workers.jobs.output.reporting.harvest import Harvest
from workers.jobs.output.reporting.watched import Watched

AT_ONCE_S, AT_LAST_S = 0.5, 60.0
"""Longest that one call takes, and the last one of an attempt."""
MAX_READ_BYTES = 2 * 1024**3
"""Bytes of all files of an attempt; what lies behind is not read."""
OLDER_S = 2.0  # clocks and file systems round
_SEARCHES: OrderedDict[Path, Search] = OrderedDict()
_MAX_SEARCHES = 2000


class _Outrun(Exception):
    """Another process was faster."""


def ingest(attempt: Attempt, *, ended: bool = False) -> int:
    """Take in what files of the program have that is new; return how many points and media came.

    Args:
        ended: the program is over: everything is read to its end, and nothing is waited for.
    """
    search = _search(attempt)
    deadline, taken = time.monotonic() + (AT_LAST_S if ended else AT_ONCE_S), 0
    try:
        while True:
            added, more = _ingest_changed(attempt, search, deadline, ended=ended)
            taken += added
            if not ended or not more or time.monotonic() > deadline:
                break
    except (_Outrun, IntegrityError):  # another process did the same
        return taken
    if ended:
        _SEARCHES.pop(search.root, None)
    if taken:
        live.nudge(attempt.job_id)
    return taken


def _search(attempt: Attempt) -> Search:
    root = RunDir.for_attempt(attempt.job_id, attempt.number).path
    search = _SEARCHES.pop(root, None)
    if search is None:
        search = Search(root, (attempt.started_at or attempt.assigned_at).timestamp() - OLDER_S)
    _SEARCHES[root] = search
    while len(_SEARCHES) > _MAX_SEARCHES:
        _SEARCHES.popitem(last=False)
    return search


def _ingest_changed(attempt: Attempt, search: Search, deadline: float, *, ended: bool) -> tuple[int, bool]:
    """Read from each file that changed until there is enough for one transaction.

    Returns:
        How much came, and whether there is more.
    """
    paths = [path for path in search.files(at_once=ended) if _changed(search, path)]
    if not paths:
        return 0, False
    paths.sort(key=lambda path: path <= search.last)  # who was not reached comes first; readers of the SDK lead anyway
    with point_files.alone(attempt.job_id, attempt.number):
        rows = {row.path: row for row in ReportFile.objects.filter(attempt=attempt)}
        harvest = Harvest(deadline)
        if sum(row.position for row in rows.values()) > MAX_READ_BYTES:
            return 0, False
        changed: dict[str, ReportFile] = {}
        for path in paths:
            if harvest.is_full:
                break
            name = _row_of(path)
            row = rows.setdefault(name, ReportFile(attempt=attempt, path=name))
            if _read(search, path, row, harvest, ended=ended):
                changed[name] = row
            search.last = path
        full = harvest.is_full
        _save(attempt, harvest, list(changed.values()))
    return sum(map(len, harvest.points.values())) + len(harvest.shown), full


def _row_of(path: str) -> str:
    """The row of a file. All checkpoints of one training say the same history, so they have one together."""
    folder, _, name = path.rpartition("/")
    return f"{trainer_state.CHECKPOINT.sub('', folder)}/{name}" if name == trainer_state.NAME else path


def _changed(search: Search, path: str) -> bool:
    """Whether a file may have more than was read. It is opened with care later; this only saves the time."""
    settled = search.settled.get(path)
    if settled is None:
        return True
    try:
        info = os.lstat(search.root / path)
    except OSError:
        return False
    return settled != f"{info.st_size}:{info.st_mtime_ns}"


def _read(search: Search, path: str, row: ReportFile, harvest: Harvest, *, ended: bool) -> bool:
    """Read from one file, and say in its row how far; whether there was anything new."""
    if row.over:
        return False
    try:
        descriptor = files.open_beneath(search.root, path)
    except (OSError, files.OutsideRoot):  # gone, or a link or pipe in its place
        return False
    try:
        info = os.fstat(descriptor)
        watched = Watched(
            path, descriptor, info.st_size, info.st_mtime, row.position, deepcopy(row.memory), final=ended
        )
        harvest.missed = Counter()
        _READERS[reader_of(watched.name)](watched, harvest, _sibling_reader(search, watched))
    finally:
        os.close(descriptor)
    if not harvest.is_full and not watched.is_fresh:
        search.settled[path] = f"{info.st_size}:{info.st_mtime_ns}"
    if (watched.position, watched.memory) == (row.position, row.memory) and not watched.over and not harvest.missed:
        return False
    row.position, row.memory, row.over = watched.position, watched.memory, watched.over
    row.missed = dict(Counter(row.missed) + harvest.missed)
    return True


def _save(attempt: Attempt, harvest: Harvest, rows: Sequence[ReportFile]) -> None:
    """Write points and media, and let them count together with how far the files were read."""
    if not rows:
        return
    changed = metrics.append_from(attempt, harvest.points)
    prepared = media.prepare(attempt, harvest.shown)
    if prepared.nameless:
        rows[0].missed = dict(Counter(rows[0].missed) + Counter(media_refused=prepared.nameless))
    with transaction.atomic():
        for row in rows:
            _save_row(row)
        metrics.save(attempt, changed)
        media.save(prepared)


def _save_row(row: ReportFile) -> None:
    if row.pk is None:
        row.save(force_insert=True)
        return
    columns = {name: getattr(row, name) for name in ("position", "memory", "missed", "over")}
    if not ReportFile.objects.filter(pk=row.pk, version=row.version).update(version=row.version + 1, **columns):
        raise _Outrun


def _sibling_reader(search: Search, watched: Watched) -> Callable[[str, int], bytes]:
    """Return a reader of the first bytes of a file in the same folder; empty for a missing name or one elsewhere."""
    folder = watched.path.rpartition("/")[0]

    def read(name: str, limit: int) -> bytes:
        try:
            descriptor = files.open_beneath(search.root, f"{folder}/{name}") if name and "/" not in name else None
        except (OSError, ValueError, files.OutsideRoot):
            return b""
        if descriptor is None:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit)

    return read


Beside = Callable[[str, int], bytes]
_READERS: dict[str, Callable[[Watched, Harvest, Beside], None]] = {
    "events": lambda watched, harvest, beside: events.read(watched, harvest),
    "lines": lambda watched, harvest, beside: json_lines.read(watched, harvest),
    "csv": lambda watched, harvest, beside: csv_files.read(watched, harvest),
    "trainer_state": lambda watched, harvest, beside: trainer_state.read(watched, harvest),
    "projector": projector.read,
    "media": sdk_media.read,
}
