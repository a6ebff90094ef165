"""Metrics as CSV: a row a step or an epoch, under a head that names the columns. Pure.

`results.csv` of Ultralytics, `metrics.csv` of Lightning's CSVLogger, `history.csv` of Keras, `progress.csv` of many.
Rows are only ever added, but Lightning writes the whole file anew when a new column comes: rows count, not bytes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re

from workers.jobs.output.reporting.harvest import Harvest, Source, step_of
from workers.jobs.output.reporting.watched import Watched

NAMED = re.compile(r"(?:.*[_.-])?(?:results|metrics|history|progress|log|train(?:ing)?)\.csv\Z", re.IGNORECASE)
STEPS = ("step", "global_step", "iteration", "iter", "epoch")
NO_FIGURES = {*STEPS, "time", "timestamp", "wall_time", "created_at", "", "unnamed: 0"}
LONGEST_HEAD, LONGEST_ROW, MAX_COLUMNS = 64 * 1024, 64 * 1024, 500
CHUNK = 256 * 1024


def read(watched: Watched, harvest: Harvest) -> None:
    """Ingest new rows; where the file was rewritten, those behind the ones that were ingested already."""
    start = os.pread(watched.descriptor, LONGEST_HEAD, 0)
    head, newline, rest = start.partition(b"\n")
    if not newline:
        if len(start) == LONGEST_HEAD:
            watched.give_up()
        return
    columns = [cell.strip() for cell in _cells(head)][:MAX_COLUMNS]
    step_column = next((columns.index(name) for name in STEPS if name in columns), None)
    if step_column is None:
        watched.give_up()
    elif _is_settled(watched, head, rest, columns):
        _rows(watched, harvest, columns, step_column)


def _is_settled(watched: Watched, head: bytes, rest: bytes, columns: list[str]) -> bool:
    """Check whether the file is the one that was read; of a rewritten one remember how many rows to skip.

    Returns:
        Whether rows can be read now.
    """
    memory, digest = watched.memory, hashlib.sha256(head).hexdigest()[:16]
    if memory.get("head") == digest and watched.size >= watched.position:
        return True
    before = _print_of(rest, columns, memory.get("columns") or columns)
    if before is None or (watched.size < watched.position and watched.is_fresh):
        return False  # it is just being written
    same = memory.get("first") in (None, before)
    taken = memory.get("rows", 0) if same else 0
    first = _print_of(rest, columns, columns)
    memory.update(head=digest, columns=columns, first=first, rows=taken, pass_over=taken)
    watched.position = len(head) + 1
    return True


def _rows(watched: Watched, harvest: Harvest, columns: list[str], step_column: int) -> None:
    memory, source = watched.memory, Source("csv", watched.path.partition("/")[2])
    while not harvest.is_full:
        data = os.pread(watched.descriptor, CHUNK, watched.position)
        end = data.rfind(b"\n") + 1
        if not end:
            if len(data) == CHUNK:
                harvest.miss("line_too_long")
                watched.position += CHUNK
                harvest.taken += CHUNK
                continue
            return
        for line in data[:end].split(b"\n")[:-1]:
            watched.position += len(line) + 1
            if not line.strip():
                continue
            if memory.get("pass_over", 0) > 0:
                memory["pass_over"] -= 1
                continue
            memory["rows"] = memory.get("rows", 0) + 1
            _row(line, watched, harvest, source, columns, step_column)
        harvest.taken += end


def _row(line: bytes, watched: Watched, harvest: Harvest, source: Source, columns: list[str], step_column: int) -> None:
    cells = _cells(line) if len(line) <= LONGEST_ROW else []
    step = step_of(_number(cells[step_column])) if step_column < len(cells) else None
    if step is None:
        harvest.miss("row_without_step")
        return
    for column, cell in zip(columns, cells, strict=False):
        number = _number(cell)
        if number is not None and column.lower() not in NO_FIGURES:
            harvest.point(source, column, step, number, watched.changed_at)


def _print_of(rest: bytes, columns: list[str], of: list[str]) -> str | None:
    """Fingerprint of the first row, by some of its columns; None while the row is incomplete."""
    line, newline, _ = rest.partition(b"\n")
    if not newline and len(rest) < LONGEST_HEAD // 2:
        return None
    cells = dict(zip(columns, (cell.strip() for cell in _cells(line)), strict=False))
    return hashlib.sha256("\0".join(cells.get(column, "") for column in of).encode()).hexdigest()[:16]


def _cells(line: bytes) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line.decode("utf-8", "replace").rstrip("\r"))), [])
    except csv.Error:
        return []


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
