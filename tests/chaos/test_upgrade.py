"""An upgrade while a job runs: `up` ends, the tables change, the next `up` finds the job where it was."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import migrated, running
from tests.chaos import witness
from tests.running import apart, ended_well, free_port, printed, wait_for

LINES, PAUSE_S = 600, 0.05


@contextlib.contextmanager
def up(root: Path, port: int, settings: str):
    """`manage.py up` until it greets; ended as an operator or systemd ends it."""
    out = root / f"{settings.rpartition('.')[2]}.txt"
    with out.open("wb") as told:
        process = subprocess.Popen(
            [sys.executable, running.MANAGE, "up", "--port", str(port)], cwd=running.HERE, stdin=subprocess.DEVNULL,
            stdout=told, stderr=told, env=os.environ | {"DJANGO_SETTINGS_MODULE": settings, "NO_COLOR": "1"},
        )  # fmt: skip
    try:
        wait_for(lambda: "ready in" in out.read_text(errors="replace"), 60, "it did not start", 0.2)
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def body(root: Path, port: int) -> None:
    import django

    django.setup()
    from django.db import connection

    from tests.chaos.faults import Cast

    migrated.begin(root)
    with up(root, port, "aiplatform.settings"):
        cast = Cast(root)
        program = Path(witness.__file__).read_text()
        job = cast.put([sys.executable, "-c", program, str(LINES), str(PAUSE_S), "0"])
        wait_for(lambda: cast.is_in(job, "running"), 30, "it does not run")
    connection.close()
    assert running.processes_of(root), "the job ended with the platform"
    log = root / "jobs" / str(job.pk) / "1" / "log.txt"
    size = log.stat().st_size
    begun = time.monotonic()
    with up(root, port, "tests.fakes.next_settings"):
        assert log.stat().st_size > size, "the job stood still meanwhile"
        with connection.cursor() as cursor:
            cursor.execute("SELECT next_note FROM workers_job WHERE id = %s", [job.pk])
            assert cursor.fetchone() == ("upgraded",)
        assert cast.is_in(job, "running", "succeeded")
        print(f"upgraded in {time.monotonic() - begun:.0f} s")
        cast.ran_once([job])
        lines = [int(line.split()[1]) for line in printed(log).splitlines()]
        assert lines == list(range(1, LINES + 1))
    connection.close()


@pytest.mark.chaos
def test_upgrade_leaves_running_jobs_alone(tmp_path):
    call, told = f"body(Path({str(tmp_path)!r}), {free_port()})", tmp_path / "told.txt"
    ended_well(apart(__name__, call, told, os.environ | running.environment(tmp_path)), told, 400)
