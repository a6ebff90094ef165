"""How much of each app the tests run: `-p tests.covered` measures one test process, `python -m tests.covered` adds up.

Lines and branches, from before Django starts. It costs more than half of the processor time again (measured: 18 s
became 29 s), so it is a step of its own that runs on demand: `python3 manage.py test coverage`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator

import coverage
import pytest

COUNTED = ("covered_lines", "num_statements", "covered_branches", "num_branches")
_running: list[coverage.Coverage] = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    """Begin, before the first module of the product is read; each process has a file of its own."""
    if not _running:
        _running.append(coverage.Coverage(data_suffix=True))
        _running[0].start()
    yield


@pytest.hookimpl(optionalhook=True)
def pytest_worker_start() -> None:
    """Measure a forked worker on its own: what the parent has measured until now, the parent writes."""
    _running.pop().stop()
    _running.append(coverage.Coverage(data_suffix=True))
    _running[0].start()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):  # a forked worker ends without `unconfigure`
        pytest_unconfigure()


def pytest_unconfigure() -> None:
    """Write what was seen."""
    while _running:
        measured = _running.pop()
        measured.stop()
        measured.save()


def figures(files: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """A line for each app and one for all, from the files of coverage's JSON report."""
    apps: dict[str, Counter[str]] = {}
    for name, facts in sorted(files.items()):
        counts = Counter({key: facts["summary"][key] for key in COUNTED})
        for app in (name.split("/")[0], "total"):
            apps.setdefault(app, Counter()).update(counts)
    whole = apps.pop("total", Counter())
    return [_line(app, counts) for app, counts in [*apps.items(), ("total", whole)]]


def _line(app: str, counts: Counter[str]) -> str:
    lines, branches = counts["num_statements"], counts["num_branches"]
    covered = 100 * counts["covered_lines"] / max(lines, 1), 100 * counts["covered_branches"] / max(branches, 1)
    return f"  {app:<12} lines {covered[0]:5.1f} % of {lines:>6}   branches {covered[1]:5.1f} % of {branches:>6}"


def main() -> int:
    """Print what the newest run measured; 1 where none did."""
    measured = coverage.Coverage()
    try:
        measured.combine()
        measured.json_report(outfile=f"{measured.config.data_file}.json")
    except coverage.exceptions.CoverageException as exc:
        print(f"no figures: {exc}")
        return 1
    with open(f"{measured.config.data_file}.json") as report:
        print("\n".join(figures(json.load(report)["files"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
