"""What the long-lived commands do before they begin to work."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests import migrated

START = """
import asyncio, sys, threading, django
django.setup()
from django.core.management import call_command
from workers.execution.agent.loop import Agent
from workers.resources.monitoring.monitor import Monitor
from workers.scheduling.loop import Scheduler
Scheduler.run = Agent.run = lambda *_: None
asyncio.run = lambda work: work.close()
Monitor.start = lambda *_: threading.Thread()
threading.Thread.start = lambda *_: None
threading.Thread.join = lambda *_: None
for command in sys.argv[1:]:
    call_command(command, skip_checks=False)
    print(f"after {command}", "pages" if "aiplatform.urls" in sys.modules else "no pages")
"""


def start(*commands: str, tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"DJANGO_SETTINGS_MODULE": "aiplatform.settings"}
    settings |= {"AIP_DATA_ROOT": str(tmp_path), "AIP_RUN_DIR": str(tmp_path), "AIP_DATABASE_URL": "", **more}
    command = [sys.executable, "-c", START, *commands]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=300)


def test_commands_that_are_started_again_and_again_import_no_page(tmp_path):
    """One process imports what all of them import; prepare: below."""
    commands = ["scheduler", "agent", "exec_relay"]

    done = start(*commands, tmp_path=tmp_path)

    lines = [line for line in done.stdout.splitlines() if line.startswith("after ")]
    assert (done.returncode, lines) == (0, [f"after {command} no pages" for command in commands]), done.stderr


def without_sessions(folder: Path) -> Path:
    """Begin with a database in which the tables of one app are missing, as before its migrations."""
    migrated.begin(folder)
    file = folder / "aiplatform.sqlite3"
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("DROP TABLE django_session")
        database.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    return file


@pytest.mark.proof
def test_prepare_migrates_the_database_and_prints_a_link_until_there_is_an_administrator_and_imports_no_page(tmp_path):
    file = without_sessions(tmp_path)

    first, second = (start("prepare", tmp_path=tmp_path) for _ in range(2))

    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM django_session").fetchone() == (0,)

    links = [line for done in (first, second) for line in done.stdout.splitlines() if line.startswith("/welcome/")]
    assert first.stdout.startswith("migrated sessions.0001_initial in ")
    assert "migrated" not in second.stdout
    assert len(set(links)) == 2
    for done in (first, second):  # whether it migrated the database or had nothing to do
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["after prepare no pages"]), done.stderr


def test_commands_refuse_a_wrong_setting_by_its_name(tmp_path):
    done = start("scheduler", tmp_path=tmp_path, AIP_PORT="many")

    assert done.returncode != 0
    assert "AIP_PORT" in done.stderr
