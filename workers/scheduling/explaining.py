"""Writes why jobs wait (reason, position, estimate), where it differs from what the rows say."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from workers.core import held_back, live
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import JobState
from workers.planning.planner.plan import Wait

WRITES = 1000
"""Rows per call: a long queue must not hold the database's write lock for long."""
NUDGES = 50
_SQL = (
    "UPDATE workers_job SET wait_code = %s, wait_args = %s, position = %s, eta = %s WHERE id = %s AND state = 'queued'"
)


@dataclass(frozen=True)
class Line:
    """What a waiting job says. `eta` is unix seconds."""

    code: str
    args: Mapping[str, int | float | str]
    position: int | None
    eta: float | None


def write(waits: Mapping[int, Wait], *, up_to: int | None) -> bool:
    """Explain the waiting jobs; return whether everything is written now.

    Args:
        up_to: leave positions beyond this one as they are, unless the job says nothing yet; None writes all.
    """
    held = held_back.reasons(now())
    changes: list[tuple[int, Line]] = []
    rows = Job.objects.filter(state=JobState.QUEUED)
    for pk, code, args, position, eta in rows.values_list("pk", "wait_code", "wait_args", "position", "eta"):
        wait = waits.get(pk)
        if wait is not None:
            if up_to is not None and wait.position > up_to and code not in ("", "new"):
                continue
            line = Line(wait.code, wait.args, wait.position, wait.eta)
        elif pk in held:
            line = Line(held[pk].code, held[pk].args, None, None)
        else:
            continue
        if _differs(Line(code, args, position, eta.timestamp() if eta else None), line):
            changes.append((pk, line))
    changes.sort(key=lambda change: change[1].position or 0)
    _save(changes[:WRITES])
    live.nudge(*(pk for pk, _line in changes[:NUDGES]))
    return len(changes) <= WRITES


def _save(changes: Iterable[tuple[int, Line]]) -> None:
    """One statement, many rows. A job that was placed meanwhile is left alone."""
    params: list[tuple[Any, ...]] = []
    for pk, line in changes:
        moment = None if line.eta is None else datetime.fromtimestamp(line.eta, UTC)
        stamp = connection.ops.adapt_datetimefield_value(moment)
        params.append((line.code, json.dumps(dict(line.args)), line.position, stamp, pk))
    if params:
        with connection.cursor() as cursor:
            cursor.executemany(_SQL, params)


def _differs(shown: Line, line: Line) -> bool:
    """Whether people should see something new; an estimate that moved a little is the same."""
    if (shown.code, shown.args, shown.position) != (line.code, dict(line.args), line.position):
        return True
    if shown.eta is None or line.eta is None:
        return (shown.eta is None) != (line.eta is None)
    ahead = max(0.0, line.eta - time.time())
    return abs(shown.eta - line.eta) > max(30.0, 0.1 * ahead)
