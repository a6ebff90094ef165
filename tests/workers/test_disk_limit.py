"""Disk limit of a job: what counts, and how a job that takes more is ended, with real processes."""

from __future__ import annotations

import os
import time

import pytest

from tests.running import wait_for as until
from tests.workers.supervised import BEST, PYTHON
from workers.supervisor import records
from workers.supervisor.disk_limit import DiskLimit
from workers.supervisor.disk_usage import Walk

MIB = 1 << 20
TIERS = range(BEST + 1)


def used(*folders, pids=lambda: []):
    walk = Walk(map(str, folders), pids)
    while not walk.done:
        walk.advance(1.0)
    assert walk.whole
    return walk.bytes


def fill(path, size_bytes):
    path.write_bytes(os.urandom(size_bytes))
    return path


def test_walk_counts_allocated_blocks_and_each_file_once(tmp_path):
    before = used(tmp_path)
    fill(tmp_path / "plain", MIB)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "again").hardlink_to(tmp_path / "plain")

    assert MIB <= used(tmp_path) - before < MIB + 64 * 1024


def test_walk_counts_every_link_in_part_once_too_many_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr("workers.supervisor.disk_usage.MAX_LINKED_FILES", 0)
    before = used(tmp_path)
    fill(tmp_path / "plain", MIB)
    (tmp_path / "again").hardlink_to(tmp_path / "plain")

    assert MIB <= used(tmp_path) - before < MIB + 64 * 1024


def test_walk_follows_no_link_out_of_the_folder(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    fill(outside / "large", MIB)
    before = used(inside)
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "large")

    assert used(inside) - before < 64 * 1024


def test_walk_counts_a_folder_inside_another_once(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    fill(tmp_path / "a" / "b" / "file", MIB)

    assert used(tmp_path, tmp_path / "a", tmp_path / "a" / "b") == used(tmp_path)


def test_walk_counts_a_deleted_file_that_is_still_open(tmp_path):
    with fill(tmp_path / "file", MIB).open("rb"):
        others = used(tmp_path, pids=lambda: [os.getpid()]) - used(tmp_path)  # of the process that runs the tests
        (tmp_path / "file").unlink()
        held = used(tmp_path, pids=lambda: [os.getpid()])
        without = used(tmp_path)

    assert held - without - others == MIB


def test_walk_reaches_the_end_of_a_tree_deeper_than_paths_may_be_long(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _level in range(300):
        os.mkdir("n" * 60, dir_fd=here)
        below = os.open("n" * 60, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.write(file := os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here), b"x" * MIB)
    os.close(file)
    os.close(here)

    assert used(tmp_path) >= MIB


def test_walk_stops_at_the_end_of_its_piece_and_goes_on(tmp_path):
    for number in range(2000):
        (tmp_path / str(number)).touch()
    walk = Walk([str(tmp_path)], lambda: [])

    pieces = 0
    while not walk.done:
        walk.advance(0.0)
        pieces += 1

    assert pieces > 10
    assert walk.entries == 2000


def test_walk_says_that_a_folder_was_moved_away_meanwhile(tmp_path):
    inside, elsewhere = tmp_path / "inside", tmp_path / "elsewhere"
    (inside / "one" / "two").mkdir(parents=True)
    elsewhere.mkdir()
    for number in range(1000):
        (inside / "one" / "two" / str(number)).touch()
    walk = Walk([str(inside)], lambda: [])
    walk.advance(0.0)  # one piece: it is in the middle of `two`
    assert 0 < walk.entries < 1000

    (inside / "one" / "two").rename(elsewhere / "two")
    while not walk.done:
        walk.advance(1.0)

    assert not walk.whole


def limit_of(tmp_path, limit_bytes, pids=lambda: []):
    return DiskLimit([str(tmp_path)], limit_bytes, pids)


def test_limit_counts_again_only_once_the_job_can_be_over(tmp_path):
    limit = limit_of(tmp_path, 8 * MIB)
    limit.check(100.0)
    first = limit.used_bytes
    fill(tmp_path / "file", 2 * MIB)
    os.sync()

    limit.check(101.5)

    assert limit.used_bytes == first  # 2 MiB more cannot be too much
    assert not limit.is_over
    limit.check(101.5 + 300)
    assert limit.used_bytes >= 2 * MIB


def test_limit_is_over_one_byte_beyond_it(tmp_path):
    fill(tmp_path / "file", 2 * MIB)
    taken = used(tmp_path)
    exact, less = limit_of(tmp_path, taken), limit_of(tmp_path, taken - 1)

    exact.check(100.0)
    less.check(100.0)

    assert (exact.is_over, less.is_over) == (False, True)


def test_limit_spends_at_most_its_part_of_a_core(tmp_path, monkeypatch):
    monkeypatch.setattr("workers.supervisor.disk_limit.written_bytes", lambda pids: None)
    spent = []
    monkeypatch.setattr(Walk, "advance", lambda self, seconds: spent.append(0.5) or 0.5)
    limit = limit_of(tmp_path, MIB)

    for tenth in range(1000):  # 100 s of a tree that takes for ever
        limit.check(100.0 + tenth / 10)

    assert sum(spent) <= 2.0 + 100 * 0.05 + 0.5


def limited(tmp_path, mib):
    """Fields of the ticket of the first run of a test."""
    return {"disk_bytes": mib * MIB, "disk_folders": [str(tmp_path / "0")]}


ENDLESS = "while :; do dd if=/dev/zero of=big bs=64k count=16 oflag=append conv=notrunc status=none; sleep 0.01; done"


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_ends_an_endless_writer(run, tmp_path, tier):
    job = run(["sh", "-c", ENDLESS], tier, **limited(tmp_path, 12))

    record = job.exit()

    assert record["limit"] == "disk"
    assert record["disk_limit_bytes"] == 12 * MIB
    assert 12 * MIB < record["disk_bytes"] < 500 * MIB
    assert job.programs() == []
    assert "[program] over_disk limit_bytes=12582912 used_bytes=" in job.log()


def test_supervisor_kills_a_fast_writer_that_ignores_term_within_seconds(run, tmp_path):
    writer = (
        "import os, signal\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        "block = bytes(4 << 20)\n"
        "file = os.open('big', os.O_CREAT | os.O_WRONLY)\n"
        "for _ in range(500): os.write(file, block)\n"
        "import time; time.sleep(100)"
    )
    job = run([PYTHON, "-S", "-c", writer], **limited(tmp_path, 16))

    record = job.exit()

    assert (record["limit"], record["signal"], record["killed"]) == ("disk", "SIGKILL", True)
    assert record["ended_at"] - record["started_at"] < 60


def test_supervisor_lets_a_job_rewrite_the_same_file(run, tmp_path):
    rewrites = (
        "import os\n"
        "for _ in range(40):\n"
        "    with open('same', 'wb') as file:\n"
        "        file.write(os.urandom(1 << 20)); file.flush(); os.fsync(file.fileno())\n"
    )
    job = run([PYTHON, "-S", "-c", rewrites], **limited(tmp_path, 8))

    record = job.exit()

    assert (record["code"], record["limit"]) == (0, "")


def test_supervisor_lets_a_job_have_a_sparse_file(run, tmp_path):
    job = run([PYTHON, "-S", "-c", "open('sparse', 'wb').truncate(1 << 40)\nimport time; time.sleep(1.5)"],
              **limited(tmp_path, 8))  # fmt: skip

    record = job.exit()

    assert (record["code"], record["limit"]) == (0, "")


def test_supervisor_lets_a_job_that_listens_save_first(run, tmp_path):
    saves = (
        "import pathlib, sys, time\n"
        "open('big', 'wb').write(bytes(12 << 20))\n"
        "while pathlib.Path('../control').read_text() != 'suspend': time.sleep(0.01)\n"
        "open('../outputs/saved', 'w').write('yes')\nsys.exit(75)"
    )
    job = run([PYTHON, "-S", "-c", saves], listens=["pause", "suspend", "finish"], **limited(tmp_path, 8))

    record = job.exit()

    assert (record["limit"], record["code"], record["killed"]) == ("disk", 75, False)
    assert (job.path / "outputs" / "saved").read_text() == "yes"


def test_supervisor_gives_a_job_that_does_not_answer_ten_seconds_to_save(run, tmp_path):
    job = run(["sh", "-c", "head -c 12582912 /dev/zero > big; sleep 100"], listens=["suspend"], **limited(tmp_path, 8))
    until(lambda: job.state() == "stopping")
    began = time.monotonic()

    record = job.exit()

    assert record["limit"] == "disk"
    assert 5 < time.monotonic() - began < 60


def test_supervisor_reports_what_a_running_job_uses(run, tmp_path):
    job = run(["sh", "-c", "head -c 4194304 /dev/zero > big; sleep 100"], **limited(tmp_path, 64))

    reported = until(lambda: records.read(job.path / records.DISK))
    job.wish("stop")

    assert reported["limit_bytes"] == 64 * MIB
    assert 0 < reported["used_bytes"] <= 64 * MIB
