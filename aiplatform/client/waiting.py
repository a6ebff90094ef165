"""Wait for jobs, and follow logs by byte offset."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from aiplatform.client import log_lines, output
from aiplatform.client.errors import JOB_FAILED, OK, ClientError
from aiplatform.client.http import Client

GOOD = {"succeeded", "finished_early"}
OVER = GOOD | {"failed", "stopped", "lost"}
PATIENCE_S = 120.0  # how long the platform may be away before a wait gives up


def state_of(row: Any) -> str:
    """Return the state of a job, or of the thing that has one."""
    return str(row.get("state") or "")


def is_over(row: Any) -> bool:
    """Whether it has ended and its results can be read, where it has any."""
    return state_of(row) in OVER and bool(row.get("published", True))


def read(client: Client, route: str, *, every_s: float = 1.0, pause: Callable[[float], None] = time.sleep) -> Any:
    """Read `route`; a platform that restarts meanwhile is waited for up to two minutes."""
    away_s = 0.0
    while True:
        try:
            return client.get(route)
        except ClientError as exc:
            if exc.status not in (0, 502, 503) or away_s >= PATIENCE_S:
                raise
        away_s += every_s
        pause(every_s)


def until_over(
    client: Client,
    route: str,
    *,
    every_s: float = 1.0,
    pause: Callable[[float], None] = time.sleep,
    until: set[str] | None = None,
    quiet: bool = False,
    word: Callable[[Any], str] = state_of,
    place: str = "",
) -> Any:
    """Read `route` until its state is final (or its `word`, usually its state, in `until`) and return the last answer.

    Changes of the state and of the reason are told on stderr, unless it is to be `quiet`; `place` stands before them,
    where several things are waited for. A platform that restarts meanwhile is waited for up to two minutes.
    """
    last_line = ""
    while True:
        row = read(client, route, every_s=every_s, pause=pause)
        state = word(row)
        reason = row.get("wait_sentence") or row.get("sentence") or ""
        line = f"{state}: {output.clean(reason)}" if reason else state
        if line != last_line and not quiet:
            output.say(f"{place}: {line}" if place else line)
            last_line = line
        if is_over(row) or (until and state in until):
            return row
        pause(every_s)


def exit_code(row: Any) -> int:
    return OK if state_of(row) in GOOD else JOB_FAILED


def follow_log(
    client: Client,
    route: str,
    *,
    follow: bool,
    tail_bytes: int | None = None,
    every_s: float = 0.5,
    pause: Callable[[float], None] = time.sleep,
    rank: int = 0,
    phases: Collection[str] = (),
    apart: bool = False,
    process: int = -1,
) -> None:
    """Copy a log to stdout; with `follow`, go on until its job is over.

    The route answers {"text", "offset", "next_offset", "size", "ended"} for `?offset=N`.

    Args:
        rank: whose log, of a job on several machines.
        phases, apart, process: as `log_lines.Printer` takes them.
    """
    offset, printer = 0, log_lines.Printer(phases, apart=apart, process=process)
    place = {"rank": rank} if rank else {}
    if tail_bytes is not None:
        offset = max(int(client.get(route, offset=0, limit=0, **place)["size"]) - tail_bytes, 0)
    away_s = 0.0
    while True:
        try:
            part = client.get(route, offset=offset, **place)
            away_s = 0.0
        except ClientError as exc:
            if not follow or exc.status not in (0, 502, 503) or away_s >= PATIENCE_S:
                raise
            away_s += every_s
            pause(every_s)
            continue
        printer.add(part["text"])
        moved = part["next_offset"] != offset
        offset = part["next_offset"]
        if moved and offset < part["size"]:
            continue
        if not follow or (part["ended"] and offset >= part["size"]):
            printer.end()
            if missing := printer.missing():
                output.say(missing)
            return
        pause(every_s)


def ended_early(row: Any) -> ClientError:
    """Return the error for something that ended while somebody waited for it to become ready."""
    why = output.clean(row.get("sentence") or "")
    return ClientError(f"The job ended in state {state_of(row)} before it was ready. {why}".rstrip(), JOB_FAILED)
