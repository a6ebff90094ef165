"""Everything lies on one small disk, which fills up while jobs run; then there is room again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import running
from tests.chaos.faults import Cast
from tests.journeys.up import call
from tests.running import apart, ended_well, free_port, wait_for

pytestmark = pytest.mark.chaos
SIZE, FULL_S = "64m", 20.0
ENDS_MEANWHILE = "import time; time.sleep(8)"


def body(root: Path) -> None:
    import django

    django.setup()
    port = free_port()
    with running.platform(root, web_port=port) as here:
        _fill_and_free(root, here, f"http://127.0.0.1:{port}")


def _fill_and_free(root: Path, here: running.Platform, url: str) -> None:
    from django.db import connection

    from accounts.services import tokens
    from workers.core.models import Alarm

    cast = Cast(root)
    _row, token = tokens.issue(user=cast.owner, name="disk", scope="write")
    wait_for(lambda: _status(url, token, "GET", "me/")[0] == 200, 60, "the web does not answer")
    cast.ran_once([cast.lines(1)])
    held, ends = cast.held(), cast.put([sys.executable, "-c", ENDS_MEANWHILE])
    wait_for(lambda: cast.is_in(held, "running") and cast.is_in(ends, "running"), 60, "not running")
    supervisors = set(running.processes_of(root))

    ballast = fill(root)
    filled = time.monotonic()
    told = wait_for(lambda: _refused(url, token, root), 60, "no write was refused")
    assert told == (507, "disk_full"), told
    while time.monotonic() - filled < FULL_S:
        fill(root)
        time.sleep(0.5)
    assert _status(url, token, "GET", "me/")[0] == 200
    assert set(running.processes_of(root)) & supervisors, "the job did not outlive the full disk"
    freed = time.monotonic()
    ballast.unlink()

    wait_for(lambda: _status(url, token, "PATCH", "me/", {"nickname": "Again"})[0] == 200, 30, "no write is taken")
    print(f"writes are taken again {time.monotonic() - freed:.1f} s after the disk was freed")
    wait_for(lambda: cast.is_in(ends, "succeeded"), 60, "its end was lost")
    print(f"the end of a job that ended meanwhile is known after {time.monotonic() - freed:.1f} s")
    wait_for(lambda: Alarm.objects.filter(rule__key="disk_full").exclude(raised_at=None).exists(), 60, "no alarm")
    (cast.outputs(held) / "end").touch()
    wait_for(lambda: cast.is_in(held, "succeeded"), 60, "the job was lost")
    assert (held.attempt_number, ends.attempt_number) == (1, 1)
    cast.ran_once([cast.lines(2)])
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check")
        assert cursor.fetchone() == ("ok",)


def fill(root: Path) -> Path:
    """Leave no byte of the disk free; returns what to delete."""
    ballast = root / "ballast"
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return ballast


def _status(url: str, token: str, method: str, route: str, body: object = None) -> tuple[int, str]:
    try:
        status, answer = call(url, token, method, route, body)
    except OSError:
        return 0, ""
    return status, answer.get("code", "") if isinstance(answer, dict) else ""


def _refused(url: str, token: str, root: Path) -> tuple[int, str] | None:
    """What a write is answered once it is no longer taken: SQLite has some room of its own."""
    fill(root)
    status, code = _status(url, token, "PATCH", "me/", {"nickname": f"Name {time.monotonic():.3f}"})
    return None if status == 200 else (status, code)


def test_platform_outlives_a_full_disk_and_loses_no_job(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        told = tmp_path / "told.txt"
        settings = os.environ | running.environment(disk)
        ended_well(apart(__name__, f"body(Path({str(disk)!r}))", told, settings), told, 600)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)
