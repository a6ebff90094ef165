"""`python3 manage.py test`: run the whole gate on a machine where nothing was installed by hand."""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from aiplatform.cli import gate_steps, output
from aiplatform.cli.gate_steps import ROOT
from aiplatform.lib import parenthood

GIVE_WAY = 5  # how much nicer the steps of the second lane are
LAST_WORDS_S = 5.0
STOP_S = 5.0  # how long processes may take to end after SIGTERM when the gate is stopped
_stopped = threading.Event()
_started = {"at": time.monotonic()}


class Result(NamedTuple):
    """The result of one step."""

    name: str
    code: int
    wall_s: float
    cpu_s: float
    problem: str = ""  # why it failed, where that is not in its output


def main(argv: list[str]) -> int:
    """Run every step (or those named) and print each result; anything after `--` goes to one pytest run."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        return _run(argv)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(argv: list[str]) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    if "--" in argv:
        return gate_steps.execute(sys.executable, "-m", "pytest", "-q", *argv[argv.index("--") + 1 :])
    _started["at"] = time.monotonic()
    parser = argparse.ArgumentParser(prog="manage.py test", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="step", help=f"only these: {' '.join(gate_steps.STEPS)}")
    parser.add_argument(
        "--long",
        action="store_true",
        help=f"long steps, for hours: {' '.join(gate_steps.LONG)} by default",
    )
    parser.add_argument(
        "--changed", nargs="?", const="", metavar="BASE",
        help="only tests close to the changes since BASE (default: since this branch left main), within a minute",
    )  # fmt: skip
    parser.add_argument("--bundle", metavar="FILE", help="install missing packages from this file, without a network")
    options = parser.parse_args(argv)
    if options.long:
        os.environ.update({name: value for name, value in gate_steps.LONG.items() if name not in os.environ})
    if unknown := set(options.steps) - set(gate_steps.STEPS):
        parser.error(f"unknown step {', '.join(sorted(unknown))}; available: {', '.join(gate_steps.STEPS)}")
    sys.path.insert(0, str(ROOT))
    if options.changed is not None:
        try:
            options.steps = _steps_for_changes(options.changed)
        except ValueError as error:
            parser.error(str(error))
        if options.steps == []:
            return 0
    names = options.steps or [name for name in gate_steps.STEPS if name not in gate_steps.ON_DEMAND]
    with tempfile.NamedTemporaryFile("r") as skipped, tempfile.TemporaryDirectory(prefix="aip-times-") as times:
        os.environ[gate_steps.SKIPPED], os.environ[gate_steps.TIMES] = skipped.name, times
        with _prepared(names) as ready:
            results, unprepared = _run_steps(names, ready), ready()
        print(output.paint("\n=== the gate", "1"))
        print("\n".join(_summary(results, Path(times))))
        for command in unprepared:
            print(f"  {output.paint('FAIL', '31')} preparing the tests failed   run again: python {command}")
        print(skipped.read(), end="")
    passed = sum(1 for result in results if not result.code)
    failed = len(results) - passed + len(unprepared)
    wall_s, cpu_s = time.monotonic() - _started["at"], sum(result.cpu_s for result in results)
    print(f"{passed} passed, {failed} failed, {wall_s:.0f} s, {cpu_s:.0f} CPU s")
    return 1 if failed else 0


def _steps_for_changes(base: str) -> list[str] | None:
    """Print what is close to the changes since a commit; return the steps that run it, None for all."""
    from tests import cpu_time, selection

    changed = selection.changed_files(base)
    selected = selection.select(changed, cpu_time.remembered())
    print("\n".join(selected.lines if changed else ["Nothing has changed."]), flush=True)
    if selected.everything:
        return None
    os.environ[gate_steps.SELECTED] = "\n".join(selected.files)
    return [*selected.steps, *(["changed"] if selected.files else [])]


def _summary(results: list[Result], times: Path) -> list[str]:
    """Describe each step with its number of tests, then the slowest tests of all steps."""
    from tests import cpu_time

    lines, all_tests = [], []
    for result in results:
        own = cpu_time.read([path for path in [times / result.name] if path.exists()])
        if own and result.name != "changed":
            cpu_time.remember(own)
        all_tests += [test._replace(name=f"{result.name}: {test.name}") for test in own]
        lines.append(_line(result, len(own)))
    return [*lines, *cpu_time.format_slowest(all_tests)] if all_tests else lines


@contextlib.contextmanager
def _prepared(names: list[str]) -> Iterator[Callable[[], list[str]]]:
    """Do once, during the first steps, what each test process would do otherwise.

    Yields:
        Waits for that; the commands that failed.
    """
    work = (
        [["-m", "compileall", "-q", *gate_steps.APPS], ["-m", "tests.migrated"]]
        if gate_steps.WITH_TESTS.intersection(names)
        else []
    )
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: [" ".join(each) for each in work if gate_steps.execute(sys.executable, *each)])
        yield done.result


def _run_steps(names: list[str], ready: Callable[[], object]) -> list[Result]:
    """Run the steps, those of different lanes side by side; steps with tests start when all is `ready` for them."""
    lanes = [own for lane in gate_steps.LANES if (own := [name for name in lane if name in names])]
    others = [name for name in names if not any(name in lane for lane in lanes)]
    if len(lanes) + bool(others) == 1:
        run, lanes = _here, [others or lanes[0]]
    else:
        run, lanes = _run_in_process, [*lanes, others]

    def run_lane(lane: list[str]) -> list[Result]:
        results = []
        for name in lane:
            if name in gate_steps.WITH_TESTS:
                ready()
            if _stopped.is_set():
                break
            results.append(run(name))
        return results

    with ThreadPoolExecutor(len(lanes)) as pool:
        results = [result for own in pool.map(run_lane, lanes) for result in own]
    return sorted(results, key=lambda result: list(gate_steps.STEPS).index(result.name))


def _budget_s(name: str) -> float:
    """Return how many seconds a step may take from now on."""
    if own := os.environ.get("AIP_STEP_TIMEOUT"):
        return float(own)
    return max(0.0, min(gate_steps.BUDGETS_S[name], _started["at"] + gate_steps.TOTAL_BUDGET_S - time.monotonic()))


def _exceeded(name: str, budget_s: float, wall_s: float) -> str:
    """Describe a step that took longer than its budget, or than what others had left of the total."""
    if budget_s < gate_steps.BUDGETS_S[name] and "AIP_STEP_TIMEOUT" not in os.environ:
        return (
            f"{name} took {wall_s:.0f} s; the other steps left {budget_s:.0f} s of the total budget of "
            f"{gate_steps.TOTAL_BUDGET_S:.0f} s."
        )
    return f"{name} took {wall_s:.0f} s, more than its budget of {budget_s:.0f} s."


def _here(name: str) -> Result:
    """Run a step with its output on this terminal."""
    print(output.paint(f"\n=== {name}", "1"), flush=True)
    budget_s = _budget_s(name)
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code = gate_steps.run(name)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_s = time.monotonic() - started
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    problem = _exceeded(name, budget_s, wall_s) if wall_s > budget_s else ""
    result = Result(name, code or (1 if problem else 0), wall_s, cpu_s, problem)
    print(_line(result), flush=True)
    return result


def _run_in_process(name: str) -> Result:
    """Run a step in a process of its own; print its output at its end."""
    print(f"{name} has started; its output is shown when it ends.", flush=True)
    budget_s, started = _budget_s(name), time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "aiplatform.cli.gate", name], cwd=ROOT, env=os.environ | {"AIP_BOOTSTRAP": "0"},
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if name not in gate_steps.LANES[0]:
            os.setpriority(os.PRIO_PROCESS, child.pid, os.getpriority(os.PRIO_PROCESS, 0) + GIVE_WAY)
        status, used, hung = _waited(child.pid, started + budget_s)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - started
        problem = ""
        if hung:
            problem = f"{_exceeded(name, budget_s, wall_s)} The stacks of its processes are in the output."
        result = Result(name, child.returncode, wall_s, used.ru_utime + used.ru_stime, problem)
        log.seek(0)
        print(f"{output.paint(f'{chr(10)}=== {name}', '1')}\n{log.read()}{_line(result)}", flush=True)
    return result


def _waited(pid: int, until: float) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for a child: status, what it used, and whether it took too long and was ended with all its children."""
    while time.monotonic() < until:
        gone, status, used = os.wait4(pid, os.WNOHANG)
        if gone:
            return status, used, False
        time.sleep(min(0.2, max(0.0, until - time.monotonic())))
    for number in (signal.SIGABRT, signal.SIGKILL):  # at the first, pytest prints where its tests stood
        for each in _family(pid):
            _send(each, number)
        time.sleep(LAST_WORDS_S if number == signal.SIGABRT else 0)
    _pid, status, used = os.wait4(pid, 0)
    return status, used, True


def _family(pid: int) -> list[int]:
    """Return a process after all its descendants."""
    descendants: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                descendants += _family(int(child))
    return [*descendants, pid]


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    """End everything that the gate has started, platforms of tests in sessions of their own too, then the gate."""
    for other in (signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    _stopped.set()
    print(f"The gate was stopped by {signal.Signals(number).name}; its processes are terminated.", flush=True)
    parenthood.adopt_orphans(on=True)  # orphans become children of the gate
    until, terminated = time.monotonic() + STOP_S, set[int]()
    while (left := _descendants()) and time.monotonic() < until:
        for pid in left - terminated:
            _send(pid, signal.SIGTERM)
        terminated |= left
        time.sleep(0.05)
    while left := _descendants():
        for pid in left:
            _send(pid, signal.SIGKILL)
        time.sleep(0.05)
    sys.exit(128 + number)


def _descendants() -> set[int]:
    """All processes below this one that have not ended."""
    return {pid for pid in _family(os.getpid()) if pid != os.getpid() and not _has_ended(pid)}


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in {"Z", "X"}
    except OSError:
        return True


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _line(result: Result, tests: int = 0) -> str:
    """Describe a result: wall and CPU seconds, tests, and for a failed step why, and how to run it again."""
    name = result.name
    verdict = output.paint("ok  ", "32") if result.code == 0 else output.paint("FAIL", "31")
    line = f"  {verdict} {name.ljust(11)} {result.wall_s:6.1f} s {result.cpu_s:7.1f} CPU s"
    if tests:
        line += f" {tests:6d} tests"
    if result.code == 0:
        return line
    mark = f"-m {name} " if name in gate_steps.MARKED else ""
    single_test = ""
    if name in {*gate_steps.MARKED, "unit", "tests"}:
        single_test = f"   one test: python3 manage.py test -- {mark}tests/…::test_…"
    problem = f"\n       {result.problem}" if result.problem else ""
    return f"{line}   run again: python3 manage.py test {name}{single_test}{problem}"


if __name__ == "__main__":
    sys.exit(gate_steps.run(sys.argv[1]))
