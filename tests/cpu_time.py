"""Measure CPU and wall seconds of each test, child processes included: `AIP_TEST_TIMES=FILE pytest …`.

The gate sets the variable for each step and prints the slowest tests at its end. By hand:

    AIP_TEST_TIMES=times.jsonl python3 manage.py test -- --workers 2 tests/datasets
    python3 -m tests.cpu_time times.jsonl

A line of the file is one test: its name and, for setup, call and teardown, [CPU seconds, wall seconds]. Processes that
a test starts are counted once they have ended and the test, or its worker, has waited for them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FILE = "AIP_TEST_TIMES"
REMEMBERED = Path(__file__).resolve().parents[1] / ".test_cache" / "seconds.json"
PHASES = ("setup", "call", "teardown")
CPU_S = pytest.StashKey[float]()
_process_time, _usage = time.process_time, resource.getrusage  # tests replace clocks


class TestTime(NamedTuple):
    """Time that one test took, all its phases and repetitions together."""

    __test__ = False  # not a class of tests

    name: str
    cpu_s: float
    wall_s: float


def cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = _usage(resource.RUSAGE_CHILDREN)
    return _process_time() + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True, tryfirst=True)
def _measure(item: pytest.Item) -> Generator[None, Any, Any]:
    before = cpu_s()
    try:
        return (yield)
    finally:
        item.stash[CPU_S] = cpu_s() - before


pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = _measure


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    report.cpu_s = round(item.stash.get(CPU_S, 0.0), 4)
    return report


class Times:
    """Writes a line for each test as soon as it is over, so that an interrupted run leaves them, too."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.phases: dict[str, dict[str, list[float]]] = {}

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in PHASES or not hasattr(report, "cpu_s"):
            return
        phases = self.phases.setdefault(report.nodeid, {})
        before = phases.get(report.when, [0.0, 0.0])
        phases[report.when] = [before[0] + report.cpu_s, before[1] + round(report.duration, 4)]
        if report.when == "teardown" and report.outcome != "rerun":
            with open(self.path, "a") as file:
                file.write(json.dumps({"name": report.nodeid, **self.phases.pop(report.nodeid)}) + "\n")


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.pop(FILE, ""):  # tests that run pytest write none
        config.pluginmanager.register(Times(path), "test-times")


@pytest.hookimpl
def pytest_worker_start(config: pytest.Config) -> None:
    config.pluginmanager.unregister(name="test-times")  # the parent writes


def read(paths: Iterable[Path]) -> list[TestTime]:
    """Read files of this plugin."""
    times: dict[str, TestTime] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            row = json.loads(line)
            spent = [row[phase] for phase in PHASES if phase in row]
            before = times.get(row["name"], TestTime(row["name"], 0.0, 0.0))  # a repeated test has several lines
            cpu, wall = (sum(one[place] for one in spent) for place in (0, 1))
            times[row["name"]] = TestTime(row["name"], before.cpu_s + cpu, before.wall_s + wall)
    return list(times.values())


def remember(times: list[TestTime]) -> None:
    """Store the wall seconds of each test file, for `manage.py test --changed`."""
    files: dict[str, float] = {}
    for one in times:
        file = one.name.partition("::")[0]
        files[file] = files.get(file, 0.0) + one.wall_s
    REMEMBERED.parent.mkdir(exist_ok=True)
    REMEMBERED.write_text(json.dumps({**remembered(), **files}))


def remembered() -> dict[str, float]:
    """Return the wall seconds of each test file in earlier runs of whole steps."""
    try:
        return json.loads(REMEMBERED.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def format_slowest(times: list[TestTime], count: int = 10) -> list[str]:
    """Describe the tests that took most CPU time and those that waited longest, one a line."""
    by_cpu = sorted(times, key=lambda one: -one.cpu_s)[:count]
    by_wall = sorted(times, key=lambda one: -one.wall_s)[:count]
    lines = [f"{count} tests with most CPU time (CPU s, wall s):", *map(_line, by_cpu)]
    return [*lines, f"{count} tests with most wall time (CPU s, wall s):", *map(_line, by_wall)]


def _line(one: TestTime) -> str:
    return f"  {one.cpu_s:7.2f} {one.wall_s:7.2f}  {one.name}"


def main() -> None:
    """Print the sums of each file and the slowest tests."""
    times = read(map(Path, sys.argv[1:]))
    print(f"{len(times)} tests, {sum(t.cpu_s for t in times):.1f} CPU s, {sum(t.wall_s for t in times):.1f} wall s")
    files: dict[str, list[TestTime]] = {}
    for one in times:
        files.setdefault(one.name.partition("::")[0], []).append(one)
    rows = [TestTime(name, sum(t.cpu_s for t in own), sum(t.wall_s for t in own)) for name, own in files.items()]
    print("\n".join(["Files:", *map(_line, sorted(rows, key=lambda row: -row.cpu_s)[:20]), *format_slowest(times, 20)]))


if __name__ == "__main__":
    main()
