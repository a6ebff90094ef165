"""Reads a job's log by byte offset. The file is the record; secrets are starred out."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from aiplatform.lib import files
from workers.core.clock import now
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.supervisor import records, secrecy
from workers.supervisor.logfile import marker

SHOWS = timedelta(seconds=90)
"""After so long every machine sees what was written; a shorter log was cut by its job."""
PIECE = 64 * 1024
"""Most bytes handed out at once."""


@dataclass(frozen=True)
class Piece:
    """A part of a log. Offsets are bytes; `ended` says that the file will not grow any more.

    `text` has U+FFFD for what is not UTF-8 and for NUL. A character cut by the end of the
    piece is left for the next one, so joined pieces read like the file.
    """

    text: str
    offset: int
    next_offset: int
    size: int
    ended: bool
    attempt: int


def path_of(job: Job, attempt: int | None = None, rank: int = 0) -> Path:
    """The log file of one machine of an attempt, the newest by default. It may not exist yet."""
    run = RunDir.for_attempt(job.pk, attempt or job.attempt_number)
    return run.path / "ranks" / str(rank) / records.LOG if rank else run.log


def size_of(path: Path) -> int:
    """Bytes to read so far; 0 for a file that is not there (yet).

    A program that floods its log grows it beyond the quota between two looks of the supervisor, which cuts it
    back each time. Until the attempt is over, readers see it end at the quota, and then at the marker.

    The file is opened for it: a network file system remembers lengths for up to a minute, but asks when one opens.
    """
    try:
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
    except (OSError, files.OutsideRoot):
        return 0
    quota = int(_ticket(path).get("log_quota_bytes") or 0)
    if not quota or size <= quota or (path.parent / records.EXIT).exists():
        return size
    mark = marker(quota).encode()
    try:
        with _opened(path) as file:
            file.seek(quota)
            return quota + len(mark) if file.read(len(mark)) == mark else quota
    except (OSError, files.OutsideRoot):
        return quota


def open_whole(job: Job, attempt: int, rank: int = 0) -> int:
    """Descriptor of an attempt's log for handing out, without its secrets.

    Raises:
        FileNotFoundError: nothing was written.
    """
    path = path_of(job, attempt, rank)
    descriptor = files.open_beneath(path.parent, path.name)
    if stat.S_ISREG(os.fstat(descriptor).st_mode) and not (path.parent / records.EXIT).exists():
        secrecy.mask_file(path, _secrets(path))  # the supervisor does it when the attempt ends
    return descriptor


def piece(
    job: Job,
    *,
    attempt: int | None = None,
    offset: int = 0,
    limit: int = PIECE,
    tail: int | None = None,
    before: int | None = None,
    rank: int = 0,
) -> Piece:
    """Part of a job's log.

    Args:
        attempt: number of the attempt; None is the newest.
        offset: first byte. Beyond the end gives an empty piece at the end, so a cut file is noticed.
        limit: most bytes, at most 64 KiB; 0 only asks for the size.
        tail: begin at the first whole line within this many bytes before the end; overrides `offset`.
        rank: which machine of a job on several.
        before: the whole lines that end at this offset, for reading backwards; overrides `offset`.
    """
    number = attempt or job.attempt_number
    ended, length, late = _end_of(job, number)  # asked before the size, so that an ended log is complete
    path = path_of(job, number, rank)
    size = size_of(path)
    ended = ended and (size >= length or late or rank > 0)  # what another machine wrote last may not show here yet
    if tail is not None:
        offset = line_start(path, max(0, size - max(0, tail)), size)
    elif before is not None:
        stop = max(0, min(before, size))
        offset = line_start(path, max(0, stop - PIECE), stop)
        offset = offset if offset < stop else max(0, stop - PIECE)  # one line longer than a piece
        limit = stop - offset
    offset = max(0, min(offset, size))
    text, used = read(path, offset, max(0, min(limit, PIECE, size - offset)), complete=ended)
    return Piece(text, offset, offset + used, size, ended, number)


def read(path: Path, offset: int, limit: int, *, complete: bool = False) -> tuple[str, int]:
    """(text, bytes used) from `offset`; `complete` decodes a cut last character too."""
    if limit <= 0:
        return "", 0
    secrets = _secrets(path)
    reach = secrecy.reach(secrets)
    begin = max(0, offset - reach)
    try:
        with _opened(path) as file:
            file.seek(begin)
            content = file.read(offset - begin + limit + reach)
            at_end = complete and offset + limit >= os.fstat(file.fileno()).st_size
    except (OSError, files.OutsideRoot):
        return "", 0
    data = secrecy.masked(content, secrets)[offset - begin : offset - begin + limit]
    used = len(data) if at_end else len(data) - _cut_character(data)
    return data[:used].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}"), used


def line_start(path: Path, offset: int, size: int) -> int:
    """The first offset from `offset` on at which a line begins; `offset` itself if none is near."""
    if offset <= 0:
        return 0
    try:
        with _opened(path) as file:
            file.seek(offset - 1)
            newline = file.read(min(PIECE, size - offset + 1)).find(b"\n")
    except (OSError, files.OutsideRoot):
        return offset
    return offset if newline < 0 else offset + newline


def _ticket(path: Path) -> dict[str, Any]:
    """What the supervisor of this log was handed; empty where it is not there yet."""
    launch = path.with_name(records.LAUNCH)
    try:
        return _read_ticket(str(launch), launch.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=256)
def _read_ticket(path: str, changed_ns: int) -> dict[str, Any]:
    ticket = records.read(Path(path)) or {}
    return {name: ticket[name] for name in ("log_quota_bytes", "secrets") if name in ticket}


def _secrets(path: Path) -> Sequence[str]:
    return tuple(_ticket(path).get("secrets") or ())


def _opened(path: Path) -> BinaryIO:
    """The file itself: no link that leads elsewhere, no pipe that would never answer."""
    return os.fdopen(files.open_beneath(path.parent, path.name), "rb")


def _cut_character(data: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character that is not complete (0 to 3)."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needs > back and back < len(data) else 0
        if byte < 0x80:
            return 0
    return 0


def _end_of(job: Job, number: int) -> tuple[bool, int, bool]:
    """(whether the attempt is over, how long its log then was, whether that is so long ago that all must show)."""
    row = Attempt.objects.filter(job=job, number=number).values_list("ended_at", "log_bytes").first()
    if row is None:
        return job.is_final or number > 0, 0, True
    ended_at, length = row
    return ended_at is not None, length, ended_at is not None and now() - ended_at > SHOWS
