"""The steps of the gate: what each runs, how long it may take, and which run side by side."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from aiplatform import env

ROOT = env.BASE_DIR
APPS = ["accounts", "aiplatform", "annotation", "datasets", "inference", "training", "workers"]


#: Two forked processes, each with its own database, data folder, server and browser (docs/decisions/0028-…).
#: xdist would start a thread in the parent, which forbids forking.
WORKERS = ("-p", "no:xdist", "--workers", "2")
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
    "AIP_STEP_TIMEOUT": "86400",  # seconds a step may take, instead of its budget
}
#: Names the file in which steps, each perhaps in a process of its own, note what they left out.
SKIPPED = "AIP_GATE_SKIPPED"
#: Names the folder in which pytest runs write the times of their tests (tests/cpu_time.py), a file for each step.
TIMES = "AIP_GATE_TIMES"
#: Holds the test files that the step `changed` runs.
SELECTED = "AIP_GATE_SELECTED"
#: Marks whose tests are chosen by the files that name them, wherever they are; see `_naming`.
NAMED = ("chaos", "journey", "postgres", "proof")
#: Tests that start whole platforms may take this long before they count as hanging.
PATIENT = ("--timeout", "1200")
_current = {"name": ""}  # the step that this process runs


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def execute(*command: str, **extra_env: str) -> int:
    """Run a command in the repository; return its exit code."""
    environment = os.environ | {"AIP_BOOTSTRAP": "0", "PYTHONDONTWRITEBYTECODE": ""} | extra_env
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _pytest(*arguments: str, **extra_env: str) -> int:
    patience = ("--timeout", os.environ["AIP_TEST_TIMEOUT"]) if "AIP_TEST_TIMEOUT" in os.environ else ()
    if folder := os.environ.get(TIMES):
        extra_env["AIP_TEST_TIMES"] = str(Path(folder) / _current["name"])
    return execute(sys.executable, "-m", "pytest", "-q", *ONE_MORE_LOOK, *arguments, *patience, **extra_env)


def names(path: Path, mark: str) -> bool:
    """Whether a file of tests names the mark."""
    return f"mark.{mark}" in path.read_text()


def _naming(mark: str) -> list[str]:
    """Files with tests of a mark that lie scattered: reading all the others takes each process half a minute."""
    return [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if names(path, mark)]


def lint() -> int:
    return execute(_tool("ruff"), "format", "--check", "-q", ".") or execute(_tool("ruff"), "check", "-q", ".")


def templates() -> int:
    return execute(_tool("djlint"), "templates", "--lint", "--quiet")


def scripts() -> int:
    """JavaScript and style sheets: lint, types, unit tests."""
    from tests.scripts import tools

    programs = tools.install()
    if programs is None:
        _skipped("Linters and type checker of scripts", "Node 20 or newer, npm and a network")
    elif failed := (
        execute(str(programs.biome), "lint", "--error-on-warnings", "--max-diagnostics=100")
        or execute(str(programs.tsc), "-p", "tests/scripts")
    ):
        return failed
    node = tools.node()
    if node is None:
        return _skipped("Unit tests of scripts", "Node 20 or newer")
    files = sorted(str(path) for path in tools.HERE.glob("*.test.js"))
    return execute(node, "--import", str(tools.HERE / "page.js"), "--test", "--test-reporter=dot", *files)


def types() -> int:
    return execute(sys.executable, "-m", "mypy", *APPS)


def imports() -> int:
    return execute(_tool("lint-imports"), "--no-cache")


def migrations() -> int:
    return execute(
        sys.executable, "manage.py", "makemigrations", "--check", "--dry-run", DJANGO_SETTINGS_MODULE="tests.settings"
    )


def _marked(mark: str) -> tuple[str, str]:
    """Choose the tests of a step: all of a mark with `--long`, else without those that are marked long, too."""
    return "-m", mark if "AIP_LONG" in os.environ else f"({mark}) and not long"


def tests() -> int:
    """Run unit tests, proofs and browser tests in one session: their files are imported once."""
    left_out = {"chaos", "journey", "gpu"} if _install_browser() else {"chaos", "journey", "gpu", "browser"}
    return _pytest(*WORKERS, *_marked(_without(left_out)), "tests")


def unit() -> int:
    return _pytest(*WORKERS, *_marked(_without({*MARKED, "gpu"})), "tests")


def changed() -> int:
    """Run the tests that `--changed` has selected."""
    return _pytest(*WORKERS, *os.environ.get(SELECTED, "tests").split("\n"))


def _without(marks: set[str]) -> str:
    return f"not {' and not '.join(sorted(marks))}"


def coverage() -> int:
    """The unit tests once more, measured; a line for each app at the end. Slower by half, so only on demand."""
    for old in (ROOT / ".test_cache").glob("coverage*"):
        old.unlink()
    code = _pytest("-p", "tests.covered", *WORKERS, "tests")  # pyproject.toml chooses
    return execute(sys.executable, "-m", "tests.covered") or code


def postgres() -> int:
    """Run the tests whose SQL differs on PostgreSQL; which, see tests/postgres_selection.py."""
    from tests import postgresql

    with postgresql.server() as url:
        if url is None:
            return _skipped("PostgreSQL")
        # --reuse-db: the server goes away whole, and no late connection can hold up its databases' end
        database = {"AIP_TEST_DATABASE_URL": url, "AIP_TEST_DATABASE_MIGRATED": "1"}
        if "AIP_LONG" not in os.environ:
            database["AIP_TEST_POSTGRES_SHORT"] = "1"
        if failed := execute(sys.executable, "-m", "tests.migrated", "here", **database):
            return failed
        return _pytest(*WORKERS, *_marked("postgres"), "--reuse-db", *_naming("postgres"), **database)


def journey() -> int:
    """Run whole platforms, from upload to a served model."""
    if not _apt("rsync", "rsync"):  # people copy into jobs with it
        return _skipped("rsync")
    return _pytest(*WORKERS, *PATIENT, *_marked("journey"), *_naming("journey"))


def proof() -> int:
    """Test access of everybody to everything, every sandbox, presets that really train, interrupted uploads."""
    return _pytest(*WORKERS, *_marked("proof"), *_naming("proof"))


def chaos() -> int:
    return _pytest(*PATIENT, *_marked("chaos"), *_naming("chaos"))


def browser() -> int:
    if not _install_browser():
        return 0
    return _pytest(*WORKERS, *_marked("browser"), "tests/browser")


def _install_browser() -> bool:
    """Install Chromium where it is missing and that is possible; return whether it is there."""
    if os.environ.get("AIP_CHROMIUM") or shutil.which("chromium-browser"):
        return True
    browsers = ("chromium-headless-shell", "chromium")  # the first has no windows: half the CPU time
    if any(_apt(name, name, "fonts-wqy-zenhei") for name in browsers):  # a font that has Chinese
        return True
    _skipped("Chromium")
    return False


def _skipped(what: str, needs: str = "root, apt and a network") -> int:
    text = f"{what} is not installed and cannot be installed here (needs {needs}): skipped."
    print(text)
    if path := os.environ.get(SKIPPED):
        with Path(path).open("a") as file:
            file.write(f"{text}\n")
    return 0


def _apt(program: str, *packages: str) -> bool:
    """Install Debian packages where that is possible and `program` is missing; whether it is there now."""
    from tests import postgresql

    if not shutil.which(program):
        print(f"Installing {' '.join(packages)} for the tests …", flush=True)
        postgresql.apt(*packages)
    return shutil.which(program) is not None


STEPS: dict[str, Callable[[], int]] = {
    "lint": lint,
    "templates": templates,
    "scripts": scripts,
    "types": types,
    "imports": imports,
    "migrations": migrations,
    "tests": tests,
    "unit": unit,
    "changed": changed,
    "coverage": coverage,
    "postgres": postgres,
    "proof": proof,
    "chaos": chaos,
    "browser": browser,
    "journey": journey,
}
#: Wall seconds all steps together may take, well below the limit of a CI.
TOTAL_BUDGET_S = 3600.0
#: Wall seconds a step may take, two to three times what it takes on two free cores. A step that takes longer is ended
#: with all its processes, and fails. `AIP_STEP_TIMEOUT` replaces the budgets; `--long` sets it.
BUDGETS_S = {
    "lint": 60,
    "templates": 60,
    "scripts": 300,  # npm installs what it needs
    "types": 600,
    "imports": 180,
    "migrations": 60,
    "tests": 3000,
    "unit": 2400,
    "changed": 600,
    "coverage": 2700,
    "postgres": 600,
    "proof": 900,
    "chaos": 1200,
    "browser": 900,
    "journey": 1800,
}
#: Run side by side, each in its order. The first waits for timeouts and leases more than it computes; the second gives
#: way to it, and uses what it leaves of two cores. With a third, five test processes and whole platforms shared those.
LANES = (
    ("chaos", "journey"),
    (
        "lint",
        "templates",
        "scripts",
        "imports",
        "migrations",
        "types",
        "tests",
        "unit",
        "changed",
        "proof",
        "browser",
        "postgres",
    ),
)
MARKED = {"browser", "chaos", "journey", "proof"}  # steps that are pytest's mark of the same name
ON_DEMAND = {
    "coverage",
    "unit",
    "changed",
    "proof",
    "browser",
}  # run when they are named; "tests" has the tests of the last three
WITH_TESTS = {"tests", "unit", "changed", "postgres", "coverage", *MARKED}


def run(name: str) -> int:
    """Run a step in this process; return its exit code."""
    _current["name"] = name
    return STEPS[name]()
