"""`python3 manage.py test`: run the whole gate on a machine where nothing was installed by hand."""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from aiplatform import env
from aiplatform.cli import output

ROOT = env.BASE_DIR
APPS = ["accounts", "aiplatform", "annotation", "datasets", "inference", "training", "workers"]


#: Two processes, each with its own database, data folder, server and browser; a file's tests stay together.
SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile")
#: A test that fails is run once more and named at the end (docs/decisions/0011-one-more-look.md).
ONE_MORE_LOOK = ("--reruns", "1", "-rR")
#: What `--long` sets: the proofs of the gate, for hours. The short form is the default where a test reads it.
LONG = {
    "AIP_LONG": "1",  # tests marked long, too
    "AIP_CHAOS_KILLS": "300",  # of processes of a running platform
    "AIP_CRASH_LOOP_SECONDS": "120",  # in which broker, scheduler and agent die again and again
    "AIP_KILLS": "50",  # of one training, between checkpoints
    "AIP_PLANNED_KILLS": "12",  # plans of uploads beside which each process is killed once
    "AIP_STATEFUL_SECONDS": "900",  # walk through the API by its description
    "AIP_MACHINE_SECONDS": "600",  # permissions beside a model of them
    "AIP_SCHEMA_EXAMPLES": "50",  # requests to each route
    "AIP_TEST_TIMEOUT": "7200",  # seconds a test may take
    "AIP_STEP_TIMEOUT": "86400",  # seconds a step may take
}
#: Names the file in which steps, each perhaps in a process of its own, note what they left out.
SKIPPED = "AIP_GATE_SKIPPED"
#: Marks whose tests lie scattered over the folders; see `_naming`.
NAMED = ("postgres", "proof")
#: Tests that start whole platforms may take this long before they count as hanging.
PATIENT = ("--timeout", "1200")
#: A test that hangs in Playwright's loop does not hear of an exception: its process ends, and says where it stood.
TO_THE_DEATH = ("--timeout-method", "thread")
#: Seconds a step may take beside others, and all of them together. A process that never ends would else hide what all
#: other steps have found.
STEP_S, ALL_S = 3600.0, 4800.0
_begun = {"at": time.monotonic()}
LAST_WORDS_S = 5.0


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(*command: str, **extra_env: str) -> int:
    environment = os.environ | {"AIP_BOOTSTRAP": "0", "PYTHONDONTWRITEBYTECODE": ""} | extra_env
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _pytest(*arguments: str, **extra_env: str) -> int:
    patience = ("--timeout", os.environ["AIP_TEST_TIMEOUT"]) if "AIP_TEST_TIMEOUT" in os.environ else ()
    return _run(sys.executable, "-m", "pytest", "-q", *ONE_MORE_LOOK, *arguments, *patience, **extra_env)


def names(path: Path, mark: str) -> bool:
    """Whether a file of tests names the mark."""
    return f"mark.{mark}" in path.read_text()


def _naming(mark: str) -> list[str]:
    """Files with tests of a mark that lie scattered: reading all the others takes each process half a minute."""
    return [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if names(path, mark)]


def lint() -> int:
    return _run(_tool("ruff"), "format", "--check", "-q", ".") or _run(_tool("ruff"), "check", "-q", ".")


def templates() -> int:
    return _run(_tool("djlint"), "templates", "--lint", "--quiet")


def scripts() -> int:
    """JavaScript and style sheets: lint, types, unit tests."""
    from tests.scripts import tools

    found = tools.install()
    if found is None:
        _skipped("What lints and types scripts", "Node 20 or newer, npm and a network")
    elif failed := (
        _run(str(found.biome), "lint", "--error-on-warnings", "--max-diagnostics=100")
        or _run(str(found.tsc), "-p", "tests/scripts")
    ):
        return failed
    node = tools.node()
    if node is None:
        return _skipped("What runs the unit tests of scripts", "Node 20 or newer")
    files = sorted(str(path) for path in tools.HERE.glob("*.test.js"))
    return _run(node, "--import", str(tools.HERE / "page.js"), "--test", "--test-reporter=dot", *files)


def types() -> int:
    return _run(sys.executable, "-m", "mypy", *APPS)


def imports() -> int:
    return _run(_tool("lint-imports"), "--no-cache")


def migrations() -> int:
    return _run(
        sys.executable, "manage.py", "makemigrations", "--check", "--dry-run", DJANGO_SETTINGS_MODULE="tests.settings"
    )


def _marked(mark: str) -> tuple[str, str]:
    """Choose the tests of a step: all of a mark with `--long`, else without those that are marked long, too."""
    return "-m", mark if "AIP_LONG" in os.environ else f"({mark}) and not long"


def unit() -> int:
    return _pytest(*SIDE_BY_SIDE, *_marked(f"not {' and not '.join((*sorted(MARKED), 'gpu'))}"), "tests")


def coverage() -> int:
    """The unit tests once more, measured; a line for each app at the end. Slower by half, so only on demand."""
    for old in (ROOT / ".test_cache").glob("coverage*"):
        old.unlink()
    code = _pytest("-p", "tests.covered", *SIDE_BY_SIDE, "tests")  # pyproject.toml chooses
    return _run(sys.executable, "-m", "tests.covered") or code


def postgres() -> int:
    """Run the tests of state machine, claims and permissions on PostgreSQL."""
    from tests import postgresql

    with postgresql.server() as url:
        if url is None:
            return _skipped("PostgreSQL")
        # --reuse-db: the server goes away whole, and no late connection can hold up its databases' end
        database = {"AIP_TEST_DATABASE_URL": url, "AIP_TEST_DATABASE_MIGRATED": "1"}
        if failed := _run(sys.executable, "manage.py", "migrate", "--noinput", "-v", "0", **database):
            return failed
        return _pytest(*SIDE_BY_SIDE, *_marked("postgres"), "--reuse-db", *_naming("postgres"), **database)


def journey() -> int:
    """Run whole platforms, from upload to a served model."""
    if not _apt("rsync", "rsync"):  # people copy into jobs with it
        return _skipped("rsync")
    return _pytest(*SIDE_BY_SIDE, *PATIENT, *_marked("journey"), "tests/journeys")


def proof() -> int:
    """Test access of everybody to everything, every sandbox, presets that really train, interrupted uploads."""
    return _pytest(*SIDE_BY_SIDE, *_marked("proof"), *_naming("proof"))


def chaos() -> int:
    return _pytest(*PATIENT, *_marked("chaos"), "tests/chaos")


def browser() -> int:
    there = os.environ.get("AIP_CHROMIUM") or shutil.which("chromium-browser")
    browsers = ("chromium-headless-shell", "chromium")  # the first has no windows: half the processor time
    if not there and not any(_apt(name, name, "fonts-wqy-zenhei") for name in browsers):  # a font that knows Chinese
        return _skipped("Chromium")
    return _pytest(*SIDE_BY_SIDE, *TO_THE_DEATH, *_marked("browser"), "tests/browser")


def _skipped(what: str, needs: str = "root, apt and a network") -> int:
    text = f"{what} is not installed and cannot be installed here (needs {needs}): skipped."
    print(text)
    if kept := os.environ.get(SKIPPED):
        with Path(kept).open("a") as file:
            file.write(f"{text}\n")
    return 0


def _apt(program: str, *packages: str) -> bool:
    """Install Debian packages where that is possible and `program` is missing; whether it is there now."""
    from tests import postgresql

    if not shutil.which(program):
        print(f"Installing {' '.join(packages)} for the tests …", flush=True)
        postgresql.apt(*packages)
    return shutil.which(program) is not None


class Result(NamedTuple):
    """The result of one step."""

    name: str
    code: int
    seconds: float
    burnt: float  # processor seconds


STEPS: dict[str, Callable[[], int]] = {
    "lint": lint,
    "templates": templates,
    "scripts": scripts,
    "types": types,
    "imports": imports,
    "migrations": migrations,
    "unit": unit,
    "coverage": coverage,
    "postgres": postgres,
    "proof": proof,
    "chaos": chaos,
    "browser": browser,
    "journey": journey,
}
#: Run side by side, each in its order. The first waits for timeouts and leases more than it computes; the second gives
#: way to it, and uses what it leaves of two cores. With a third, five test processes and whole platforms shared those.
LANES = (
    ("chaos", "journey"),
    ("types", "unit", "proof", "browser", "postgres"),
)
GIVE_WAY = 5  # how much nicer the second is
ON_DEMAND = {"coverage"}  # run when they are named
MARKED = {"browser", "chaos", "journey", "proof"}  # steps that are pytest's mark of the same name


def main(argv: list[str]) -> int:
    """Run every step (or those named) and print each result; anything after `--` goes to one pytest run."""
    if "--" in argv:
        return _run(sys.executable, "-m", "pytest", "-q", *argv[argv.index("--") + 1 :])
    started = _begun["at"] = time.monotonic()
    parser = argparse.ArgumentParser(prog="manage.py test", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="step", help=f"only these: {' '.join(STEPS)}")
    parser.add_argument(
        "--long", action="store_true", help=f"the proofs at length, for hours: {' '.join(LONG)} where they are not set"
    )
    parser.add_argument("--bundle", metavar="FILE", help="install what is missing from this file, without a network")
    options = parser.parse_args(argv)
    if options.long:
        os.environ.update({name: value for name, value in LONG.items() if name not in os.environ})
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"unknown step {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    sys.path.insert(0, str(ROOT))
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    names = options.steps or [name for name in STEPS if name not in ON_DEMAND]
    with tempfile.NamedTemporaryFile("r") as skipped:
        os.environ[SKIPPED] = skipped.name
        with _prepared(names) as ready:
            results, unprepared = _all(names, ready), ready()
        print(output.paint("\n=== the gate", "1"))
        for result in results:
            print(_line(result))
        for command in unprepared:
            print(f"  {output.paint('FAIL', '31')} what the tests need did not come about   again: python {command}")
        print(skipped.read(), end="")
    passed = sum(1 for result in results if not result.code)
    failed = len(results) - passed + len(unprepared)
    print(f"{passed} passed, {failed} failed, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


@contextlib.contextmanager
def _prepared(names: list[str]) -> Iterator[Callable[[], list[str]]]:
    """Do once, beside the first steps, what else each process of a test would do.

    Yields:
        Waits for that; the commands that failed.
    """
    needed = {name for lane in LANES for name in lane}.intersection(names)
    work = [["-m", "compileall", "-q", *APPS], ["-m", "tests.migrated"]] if needed else []
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: [" ".join(each) for each in work if _run(sys.executable, *each)])
        yield done.result


def _all(names: list[str], ready: Callable[[], object]) -> list[Result]:
    """Run the steps, those of different lanes side by side, as soon as all is `ready` for them."""
    lanes = [found for lane in LANES if (found := [name for name in lane if name in names])]
    first = [name for name in names if not any(name in lane for lane in lanes)] if len(lanes) > 1 else names
    if len(lanes) <= 1:
        ready()
    results = [_here(name) for name in first]
    if len(lanes) > 1:
        ready()
        with ThreadPoolExecutor(len(lanes)) as pool:
            for done in pool.map(lambda lane: [_apart(name) for name in lane], lanes):
                results += done
    return sorted(results, key=lambda result: list(STEPS).index(result.name))


def _here(name: str) -> Result:
    """Run a step with its output on this terminal."""
    print(output.paint(f"\n=== {name}", "1"), flush=True)
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code = STEPS[name]()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    burnt = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = Result(name, code, time.monotonic() - started, burnt)
    print(_line(result), flush=True)
    return result


def _apart(name: str) -> Result:
    """Run a step in a process of its own; print its output at its end."""
    print(f"{name} begins; its words come when it is over.", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as words:
        child = subprocess.Popen(
            [sys.executable, "-m", "aiplatform.cli.gate", name], cwd=ROOT, env=os.environ | {"AIP_BOOTSTRAP": "0"},
            stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if name not in LANES[0]:
            os.setpriority(os.PRIO_PROCESS, child.pid, os.getpriority(os.PRIO_PROCESS, 0) + GIVE_WAY)
        limit_s = float(os.environ.get("AIP_STEP_TIMEOUT") or STEP_S)
        until = started + limit_s
        if "AIP_STEP_TIMEOUT" not in os.environ:
            until = min(until, _begun["at"] + ALL_S)
        status, used, hung = _waited(child.pid, until)
        child.returncode = os.waitstatus_to_exitcode(status)
        result = Result(name, child.returncode, time.monotonic() - started, used.ru_utime + used.ru_stime)
        if hung:
            said = f"{name} did not end within {until - started:.0f} s. Where its processes stood is above."
            words.write(f"\n{said}\n")
        words.seek(0)
        print(f"{output.paint(f'{chr(10)}=== {name}', '1')}\n{words.read()}{_line(result)}", flush=True)
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
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)
        time.sleep(LAST_WORDS_S if number == signal.SIGABRT else 0)
    _pid, status, used = os.wait4(pid, 0)
    return status, used, True


def _family(pid: int) -> list[int]:
    """A process and all below it, those first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += _family(int(child))
    return [*found, pid]


def _line(result: Result) -> str:
    """Describe a result: duration, cores, and for a failed step how to run it again."""
    name, code, seconds, burnt = result
    verdict = output.paint("ok  ", "32") if code == 0 else output.paint("FAIL", "31")
    line = f"  {verdict} {name.ljust(11)} {seconds:6.1f} s {burnt / max(seconds, 0.01):5.1f} cores"
    if code == 0:
        return line
    mark = f"-m {name} " if name in MARKED else ""
    single_test = f"   one test: python3 manage.py test -- {mark}tests/…::test_…" if name in {*MARKED, "unit"} else ""
    return f"{line}   again: python3 manage.py test {name}{single_test}"


if __name__ == "__main__":
    sys.exit(STEPS[sys.argv[1]]())
