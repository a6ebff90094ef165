"""A disk without room: jobs go on, their end is kept, and nobody takes them for lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import HERE
from tests.running import wait_for as until
from tests.workers import full_disk
from tests.workers.supervised import Run
from workers.supervisor import claims, daemon, records

PROGRAM = ["sh", "-c", "echo begun; read line < go; echo goes on"]


class Injected(Run):
    """A run whose supervisor meets a full disk at its nth write."""

    def start(self, nth: int = 0, seconds: float = 0.0) -> int:
        os.mkfifo(self.path / "code" / "go")
        command = [sys.executable, "-m", "tests.workers.full_disk", str(self.path), str(nth), str(seconds)]
        return subprocess.run(command, cwd=HERE, check=False, timeout=90).returncode

    def go(self) -> None:
        """Let the program end."""
        descriptor = until(self._opened, 10)
        os.write(descriptor, b"\n")
        os.close(descriptor)

    def _opened(self) -> int | None:
        with contextlib.suppress(OSError):
            return os.open(self.path / "code" / "go", os.O_WRONLY | os.O_NONBLOCK)
        return None

    def writes(self) -> int:
        """Writes of the whole life of the supervisor, which has ended."""
        until(lambda: not records.is_alive(self.supervisor))
        return len(Path(f"{self.path}.{full_disk.WRITES}").read_text())


@pytest.fixture(scope="module")
def writes(tmp_path_factory) -> int:
    job = Injected(tmp_path_factory.mktemp("counted") / "run", 0, PROGRAM)
    assert job.start() == daemon.STARTED
    job.go()
    job.exit()
    return job.writes()


def test_supervisor_keeps_a_job_whichever_write_finds_the_disk_full(tmp_path, writes):
    jobs = {nth: Injected(tmp_path / str(nth), 0, PROGRAM) for nth in range(1, writes + 1)}
    codes, ends = {}, {}
    for nth, job in jobs.items():  # they run side by side, which saves the time that each of them waits
        codes[nth] = job.start(nth, 0.3)
        if codes[nth] == claims.DISK_FULL_EXIT_CODE:  # nothing began: asked again, it begins
            assert job.supervisor == {}
            os.unlink(job.path / "code" / "go")
            codes[nth] = job.start()
        job.go()
    for nth, job in jobs.items():
        record = job.exit()
        until(lambda job=job: job.state() == "ended" or not records.is_alive(job.supervisor))
        ends[nth] = (codes[nth], record["code"], record["error"], job.log().splitlines()[:2])

    assert writes > 15
    assert ends == dict.fromkeys(ends, (daemon.STARTED, 0, "", ["begun", "goes on"]))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def fill(folder: Path) -> Path:
    """Leave no byte of a disk free; returns what to delete."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(folder).f_bavail == 0
    return ballast


def test_supervisor_records_the_end_of_a_job_on_a_full_disk(small_disk):
    job = Run(small_disk / "run", 0, ["sh", "-c", "echo begun; sleep 0.5; exit 3"])
    assert job.start() == daemon.STARTED
    fill(small_disk)

    record = job.exit()

    assert (record["code"], record["disk_full"], job.log()) == (3, True, "begun\n")


def test_supervisor_stops_a_job_that_has_filled_the_disk(small_disk):
    job = Run(small_disk / "run", 0, ["sleep", "100"])
    assert job.start() == daemon.STARTED
    fill(small_disk)

    job.wish("stop")

    assert (job.exit()["requested"], job.programs()) == ("stop", [])


def test_supervisor_tells_what_it_owes_once_there_is_room_again(small_disk):
    job = Run(small_disk / "run", 0, ["sleep", "100"])
    assert job.start() == daemon.STARTED
    ballast = fill(small_disk)
    job.wish("pause")
    until(lambda: _stopped(job), 5)

    ballast.unlink()

    until(lambda: job.state() == "paused")
    until(lambda: "[program] disk_was_full" in job.log())
    job.wish("stop")
    assert job.exit()["disk_full"]


def _stopped(job: Run) -> bool:
    child = job.supervisor["child"]["pid"]
    return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def test_supervisor_does_not_begin_on_a_full_disk_and_does_once_there_is_room(small_disk):
    job = Run(small_disk / "run", 0, ["sh", "-c", "echo once"])
    ballast = fill(small_disk)
    refused = job.start()
    ballast.unlink()

    assert (refused, job.start(), job.exit()["code"], job.log()) == (
        claims.DISK_FULL_EXIT_CODE,
        daemon.STARTED,
        0,
        "once\n",
    )


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path):
    yield
    for path in tmp_path.rglob(records.SUPERVISOR):
        kept = records.read(path)
        if records.is_alive(kept):
            os.kill(kept["pid"], signal.SIGKILL)
