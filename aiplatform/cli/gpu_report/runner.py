"""The runner of the report: checks in the order of their value, within a time limit, each in a process of its own."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from aiplatform import __version__
from aiplatform.cli.gpu_report import children, locks, node_facts
from aiplatform.cli.gpu_report.definitions import (
    Check,
    Context,
    NotAvailable,
    Result,
    Status,
    Value,
    judge,
    result_of,
)
from aiplatform.cli.gpu_report.reservation import Reservation, Unavailable
from workers.resources.nodes.telemetry.probe import Card

SCHEMA = 1
END_S = 15.0  # for cleaning up and writing the report, of the time that was given
FACTS_S = 90.0
EXIT_CODES = {"failed": 1, "passed": 0, "nothing": 2}

Reserve = Callable[[Sequence[Card], Mapping[str, Any], float], AbstractContextManager[Reservation]]


class Budget:
    """The time of the whole report."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds - END_S

    def left_s(self) -> float:
        return max(0.0, self._end - self._clock())


def run(
    checks: Sequence[Check], *, minutes: float, folder: Path, reserve: Reserve, fake_gpus: int = 0, node: str = "",
    on_result: Callable[[Result], None] = lambda result: None,
) -> dict[str, Any]:  # fmt: skip
    """Run the checks and return the report as a JSON-ready document.

    Args:
        minutes: after which it is over, whatever happens.
        folder: below AIP_DATA_ROOT; work is in a folder there that is removed again.
        reserve: reserves some of the GPUs found; it is given the facts and the seconds that are left.
        fake_gpus: AIP_FAKE_GPUS; checks report examples then and measure nothing.
        on_result: called after each check.
    """
    budget, started = Budget(60 * minutes), datetime.now(UTC)
    document: dict[str, Any] = {
        "schema": SCHEMA, "version": __version__, "node": node or platform.node(), "minutes": minutes,
        "started_at": started.isoformat(timespec="seconds"), "simulated": bool(fake_gpus),
        "facts": {}, "reservation": {}, "checks": [],
    }  # fmt: skip
    results: list[Result] = []
    with _work_folder(folder) as work:
        document["facts"] = facts = _facts(work, fake_gpus, budget)
        devices = [Card(**device) for device in facts.get("devices", ())]
        try:
            if not devices:
                raise Unavailable(facts.get("error") or "This node has no NVIDIA GPU.")
            with reserve(devices, facts, budget.left_s()) as reservation:
                document["reservation"] = reservation.as_json()
                for check in checks:
                    results.append(_one(check, reservation, facts, work, budget))
                    on_result(results[-1])
        except Unavailable as exc:
            document["reservation"] = {"how": "none", "problem": str(exc)}
            results += [result_of(check, Status.SKIPPED, str(exc)) for check in checks[len(results) :]]
    document["checks"] = [result.as_json() for result in results]
    document["summary"] = {status.value: sum(r.status == status for r in results) for status in Status}
    document["exit_code"] = exit_code(results)
    document["ended_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    return document


def exit_code(results: Sequence[Result]) -> int:
    """1 where a check failed, 0 where one passed and none failed, 2 where nothing could be checked."""
    statuses = {result.status for result in results}
    outcome = "failed" if Status.FAILED in statuses else "passed" if Status.PASSED in statuses else "nothing"
    return EXIT_CODES[outcome]


def run_check(check: Check, context: Context) -> Result:
    """Run one check in a process of its own, with the limit of its context."""
    outcome = children.run(partial(_values, check, context), context.folder, context.seconds)
    if outcome.error or not isinstance(outcome.value, dict):
        return result_of(check, Status.FAILED, outcome.error, output=outcome.output, seconds=outcome.seconds)
    if "not_available" in outcome.value:
        return result_of(check, Status.NOT_AVAILABLE, outcome.value["not_available"], seconds=outcome.seconds)
    result = judge(check, outcome.value["values"])
    result.seconds = outcome.seconds
    result.output = outcome.output if result.status == Status.FAILED else ""
    return result


def _values(check: Check, context: Context) -> dict[str, Any]:
    try:
        return {"values": dict(check.function()(context))}
    except NotAvailable as exc:
        return {"not_available": str(exc)}


def _one(check: Check, reservation: Reservation, facts: Mapping[str, Any], work: Path, budget: Budget) -> Result:
    """Run one check if it can run and its time is left."""
    left_s = budget.left_s()
    if check.seconds > left_s:
        reason = f"Not enough time left: the check takes about {check.seconds:.0f} s, {left_s:.0f} s are left."
        return result_of(check, Status.SKIPPED, reason)
    if facts.get("simulated"):
        return _simulated(check, work, min(check.limit_s, left_s))
    if obstacle := node_facts.missing(check.needs, facts, len(reservation.devices)):
        return result_of(check, Status.NOT_AVAILABLE, obstacle)
    if ended := reservation.problem():
        return result_of(check, Status.SKIPPED, ended)
    limit_s = min(check.limit_s, left_s)
    return run_check(check, Context(reservation.devices, work / check.id, limit_s, job=reservation.job))


def _simulated(check: Check, work: Path, limit_s: float) -> Result:
    """What the report of a healthy node would say, through the same process and the same judgement."""
    outcome = children.run(check.examples, work / check.id, limit_s)
    if outcome.error:
        return result_of(check, Status.FAILED, outcome.error, output=outcome.output, seconds=outcome.seconds)
    values: dict[str, Value] = outcome.value
    result = judge(check, values, simulated=True)
    result.seconds = outcome.seconds
    return result


def _facts(work: Path, fake_gpus: int, budget: Budget) -> dict[str, Any]:
    limit_s = min(FACTS_S, budget.left_s())
    outcome = children.run(partial(node_facts.read, fake_gpus), work / "facts", limit_s)
    return outcome.value if isinstance(outcome.value, dict) else {"error": outcome.error}


@contextmanager
def _work_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder for this report only, after removing what killed reports left."""
    folder.mkdir(parents=True, exist_ok=True)
    locks.sweep(folder)
    work = Path(tempfile.mkdtemp(prefix=locks.WORK, dir=folder))
    work.chmod(0o755)  # users of jobs pass through it
    try:
        with locks.held(work / locks.LOCK):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
