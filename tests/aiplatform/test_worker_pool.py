"""Forked test workers: one summary, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from aiplatform import env
from aiplatform.cli import gate_steps
from tests import worker_pool
from tests.running import wait_for

ENDS = """
import os, pathlib, signal, warnings
import pytest

@pytest.fixture(scope="module")
def room(tmp_path_factory):
    yield tmp_path_factory.mktemp("room")
    print("the fixture of the module ends")

@pytest.fixture(scope="session")
def house():
    yield
    pathlib.Path("house-ended").touch()

def test_dies_once(room):
    mark = pathlib.Path("died")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

def test_dies_always():
    os._exit(7)

def test_after_it(room, house):
    warnings.warn("a warning of a worker")
    print("a line of a worker")
    assert room.parts[-2].startswith("gw"), "each worker has a folder of its own"
    assert 1 == 2
"""


SLOW = """
import pathlib, time
import pytest

@pytest.fixture(scope="module")
def room():
    yield
    pathlib.Path("room-ended").touch()

def test_slow(room):
    pathlib.Path("started").touch()
    time.sleep(60)
"""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command, environment = pytest_command(folder, *arguments)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def pytest_command(folder: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.worker_pool", "-p", "no:xdist", "-p", "no:django"]
    plugins = ("cacheprovider", "hypothesispytest", "asyncio", "schemathesis")
    command += [word for name in plugins for word in ("-p", f"no:{name}")]
    environment = os.environ | {"PYTHONPATH": str(gate_steps.ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
    environment.pop("PYTEST_ADDOPTS", None)
    command += ["-q", "-c", "empty.ini", "--rootdir", ".", "--workers", "2", *arguments]
    (folder / "empty.ini").write_text("[pytest]\n")
    return command, environment


def test_pool_replaces_a_worker_that_dies_and_fails_only_its_test(tmp_path):
    (tmp_path / "test_ends.py").write_text(ENDS)
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")

    done = run_pytest(tmp_path, "--reruns", "1", "-rR")

    assert done.returncode == 1, done.stderr
    assert "2 failed, 2 passed, 2 warnings, 3 rerun" in done.stdout
    assert "in this test" in done.stdout
    assert "exited: 7" in done.stdout
    assert "RERUN test_ends.py::test_dies_once" in done.stdout
    assert "a line of a worker" in done.stdout  # captured output of the failing test
    assert "assert 1 == 2" in done.stdout
    assert (tmp_path / "house-ended").exists()  # fixtures of the session end in each worker


def test_pool_stops_at_the_first_failure_where_that_is_asked_for(tmp_path):
    body = "import time\n\ndef test_fails():\n    assert False\n\ndef test_never():\n    pass\n"
    (tmp_path / "test_fails.py").write_text(body)
    (tmp_path / "test_slow.py").write_text("import time\n\ndef test_slow():\n    time.sleep(60)\n")

    done = run_pytest(tmp_path, "-x")

    assert done.returncode == 1, done.stderr
    assert "stopping after 1 failures" in done.stdout
    assert "1 failed in" in done.stdout


def test_pool_ends_fixtures_of_its_workers_when_it_is_interrupted(tmp_path):
    (tmp_path / "test_slow.py").write_text(SLOW)
    command, environment = pytest_command(tmp_path)
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as run:
        wait_for((tmp_path / "started").exists, 30, "the test did not start")
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=30)

    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in out
    assert (tmp_path / "room-ended").exists()


def test_pool_orders_files_by_the_time_they_are_expected_to_take():
    def item(path: str, *marks: str) -> SimpleNamespace:
        return SimpleNamespace(path=Path(path), iter_markers=lambda: [SimpleNamespace(name=mark) for mark in marks])

    groups = worker_pool.group_items(
        [item("short"), item("long", "proof"), item("short"), item("page", "browser"), item("long", "proof")]
    )

    assert [(group.kind, group.positions) for group in groups] == [("", [1, 4]), ("browser", [3]), ("", [0, 2])]


def test_pool_refuses_to_fork_beside_a_thread():
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="busy")
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="busy"):
            worker_pool.check_forkable()
    finally:
        over.set()
        thread.join()


def test_worker_has_data_folder_and_database_of_its_own(settings, db):
    from django.db import connection

    name = os.environ.get("AIP_TEST_WORKER", "main")

    assert env.DATA_ROOT.name == env.RUN_DIR.parent.name == name
    assert settings.RUN_DIR == env.RUN_DIR
    if connection.vendor == "sqlite":
        assert Path(connection.settings_dict["NAME"]).parent == env.DATA_ROOT
