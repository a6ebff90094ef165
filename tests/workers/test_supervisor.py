"""The supervisor with real processes, in every tier this machine offers."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.running import wait_for as until
from tests.workers.supervised import BEST, MAIN, PYTHON
from workers.supervisor import processes, records

TIERS = range(BEST + 1)


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_runs_a_program_and_records_its_end(run, tier):
    job = run(["sh", "-c", "echo out; echo err >&2; exit 3"], tier)

    record = job.exit()

    assert (record["code"], record["signal"], record["requested"]) == (3, None, "run")
    assert job.log() == "out\nerr\n"


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_names_a_crash_by_its_signal(run, tier):
    job = run([PYTHON, "-S", "-c", "import os; os.kill(os.getpid(), 11)"], tier)

    assert job.exit()["signal"] == "SIGSEGV"


@pytest.mark.parametrize("tier", TIERS)
def test_f01_supervisor_passes_names_to_the_program_as_they_are(run, tier):
    odd = ["; touch p", "$(id)", "`id`", "a\nb", "'\"", "--help"]
    job = run([PYTHON, "-S", "-c", "import sys; print(sys.argv[1:])", *odd], tier)

    job.exit()

    assert job.log().strip() == repr(odd)
    assert not (job.path / "code" / "p").exists()


def test_supervisor_reports_a_program_that_does_not_exist(run):
    job = run(["/no/such/program"], 0)

    assert "No such file" in job.exit()["error"]
    assert "[command] not_started program=/no/such/program" in job.log()


def test_supervisor_starts_a_run_once_however_often_requested(run):
    job = run(["sh", "-c", "echo once; sleep 0.2"])
    again = [job.start() for _ in range(3)]

    job.exit()

    assert again == [3, 3, 3]
    assert job.start() == 3
    assert job.log() == "once\n"


def test_supervisor_lets_a_stop_before_the_start_win(run):
    job = run(["sh", "-c", "echo never"], start=False)
    job.wish("stop")
    job.start()

    assert job.exit()["requested"] == "stop"
    assert job.log() == ""


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_pauses_a_program_and_lets_it_go_on(run, tier):
    job = run(["sh", "-c", "echo up; while :; do sleep 0.01; done"], tier, stop_grace_s=0.4)
    until(lambda: "up" in job.log())  # what is stopped earlier may still be bubblewrap by its name
    job.wish("pause")
    until(lambda: job.state() == "paused")

    def states():
        found = {processes.state(pid) for pid in job.programs() if "bwrap" not in processes.name(pid)}
        # A child that just ended waits for its stopped parent; a parent in vfork (D) for its stopped child.
        return found - {"Z", "D"}

    until(lambda: states() == {"T"})  # a stop that was sent takes effect when its process gets its turn
    control = (job.path / records.CONTROL).read_text()

    job.wish("run")
    until(lambda: job.state() == "running")
    paused_s = float((job.path / records.PAUSED).read_text())
    job.wish("stop")

    assert control == "pause"
    assert paused_s > 0  # written before the program continues: it leaves this time out of what it measures
    assert (record := job.exit())["requested"] == "stop"
    assert record["paused_s"] == paused_s


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_stops_a_paused_program(run, tier):
    job = run(["sleep", "100"], tier)
    job.wish("pause")
    until(lambda: job.state() == "paused")

    job.wish("stop")

    assert job.exit()["signal"] == "SIGTERM"
    assert job.programs() == []


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_kills_a_program_that_ignores_sigterm(run, tier):
    job = run(["sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done'], tier, stop_grace_s=0.3)
    until(lambda: "up" in job.log())

    job.wish("stop")
    record = job.exit()

    assert (record["signal"], record["killed"]) == ("SIGKILL", True)
    assert job.programs() == []


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_lets_a_program_below_a_shell_save_at_sigterm(run, tier):
    saves = (
        "import os, signal, sys, time\n"  # print in a handler may meet the print that it interrupts
        "signal.signal(15, lambda *_: (os.write(1, b'saved\\n'), sys.exit(0)))\n"
        "os.write(1, b'up\\n')\ntime.sleep(100)"
    )
    job = run(["sh", "-c", f'{PYTHON} -S -c "$0"; echo after', saves], tier)
    until(lambda: "up" in job.log())

    job.wish("finish")

    assert job.exit()["code"] == 0
    assert job.log().split() == ["up", "saved", "after"]


def test_supervisor_hands_on_that_nobody_needs_a_result(run):
    listens = (
        "import pathlib, sys, time\n"
        "print('up', flush=True)\n"
        "while pathlib.Path('../control').read_text() != 'finish quick': time.sleep(0.01)\nsys.exit(0)"
    )
    job = run([PYTHON, "-S", "-c", listens], listens=["finish"], finish_grace_s=30)
    until(lambda: "up" in job.log())

    job.wish("finish quick")
    record = job.exit()

    assert (record["code"], record["requested"], record["termed"]) == (0, "finish", False)


@pytest.mark.parametrize(("protocol", "word"), [(1, "finish"), (3, "finish"), (4, "finish quick")])
def test_supervisor_of_before_an_upgrade_is_told_what_it_knows(tmp_path, protocol, word):
    records.write(tmp_path / records.SUPERVISOR, {"pid": 1, "protocol": protocol})

    assert records.compatible_request(tmp_path, "finish quick") == word
    records.write_request(tmp_path, "finish quick")
    assert records.read_request(tmp_path) == word


def test_supervisor_requests_by_file_and_gives_time_to_who_listens(run):
    listens = (
        "import pathlib, sys, time\n"
        "print('up', flush=True)\n"
        "while pathlib.Path('../control').read_text() != 'suspend': time.sleep(0.01)\nsys.exit(75)"
    )
    job = run([PYTHON, "-S", "-c", listens], listens=["suspend"], suspend_grace_s=30)
    until(lambda: "up" in job.log())

    job.wish("suspend")
    record = job.exit()

    assert (record["code"], record["requested"], record["killed"]) == (75, "suspend", False)


def test_supervisor_stop_overrides_a_finish_and_nothing_softens_it(run):
    job = run(["sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done'], stop_grace_s=0.3, term_grace_s=60)
    until(lambda: "up" in job.log())
    job.wish("finish")
    until(lambda: job.state() == "finishing")

    job.wish("stop")
    until(lambda: job.state() == "stopping")
    job.wish("run")

    assert job.exit()["requested"] == "stop"


@pytest.mark.parametrize("tier", TIERS)
def test_supervisor_ends_daemonised_processes_with_the_job(run, tier):
    hides = (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)\n"
        "os.wait()"
    )
    job = run([PYTHON, "-S", "-c", hides], tier)

    job.exit()

    assert until(lambda: job.programs() == [])


@pytest.mark.skipif(BEST < 2, reason="bubblewrap does not work on this machine")
def test_supervisor_that_is_killed_leaves_no_process(run):
    hides = "import os, time\nif os.fork() == 0: os.setsid()\nprint('up', flush=True)\ntime.sleep(1000)"
    job = run([PYTHON, "-S", "-c", hides])
    until(lambda: job.log().count("up") == 2)

    os.kill(job.supervisor["pid"], signal.SIGKILL)

    until(lambda: job.programs() == [])
    assert not records.is_alive(job.supervisor)
    assert records.read(job.path / records.EXIT) is None


def test_supervisor_time_limit_does_not_run_while_paused(run):
    started = time.monotonic()
    job = run(["sleep", "100"], max_runtime_s=None)
    job.wish("pause")
    until(lambda: job.state() == "paused")
    paused = time.monotonic()
    limit_s = paused - started + 0.5  # at least half a second more than it ran
    records.write(job.path / records.LIMIT, str(limit_s))
    until(lambda: time.monotonic() - paused > 1.7)  # over by then, with two looks of the supervisor at the new limit
    still = records.read(job.path / records.EXIT)
    job.wish("run")

    record = job.exit()

    assert still is None
    assert record["limit"] == "max_runtime"
    assert record["paused_s"] > 1.6


def test_supervisor_time_limit_of_a_running_job_moves(run):
    job = run(["sleep", "100"], max_runtime_s=None)
    records.write(job.path / records.LIMIT, "0.2")

    record = job.exit()

    assert record["limit"] == "max_runtime"
    assert "[program] over_time seconds=0.2" in job.log()


def test_supervisor_reads_a_longer_limit_before_the_shorter_ends_the_job(run):
    job = run(["sleep", "1.2"], max_runtime_s=1)
    records.write(job.path / records.LIMIT, "")

    assert job.exit()["limit"] == ""


def test_supervisor_cuts_a_log_beyond_its_quota_and_the_job_goes_on(run):
    waits = "while [ ! -e $RUN/code/go ]; do sleep 0.02; done"
    job = run(["sh", "-c", f"seq 1 20000; {waits}; seq 20001 40000; echo the end; exit 4"], log_quota_bytes=10_000)
    until(lambda: "log cut at" in job.log())
    (job.path / "code" / "go").touch()

    record = job.exit()

    assert record["code"] == 4
    assert "log cut at 10,000 bytes" in job.log()
    assert job.log().startswith("1\n2\n3\n")
    assert job.log().rstrip().endswith("the end")
    assert len(job.log()) < 10_000 + 2 * (64 << 10)


@pytest.mark.skipif(BEST < 1, reason="no sandbox works on this machine")
@pytest.mark.parametrize("tier", [tier for tier in TIERS if tier >= 1])
def test_f06_sandbox_job_reads_nothing_of_the_platform_and_forges_no_records(run, tier, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("canary")
    tries = (
        "import pathlib\n"
        f"for path in ({str(secret)!r}, {str(MAIN)!r}, '/etc/shadow'):\n"
        "    try: print(pathlib.Path(path).read_text())\n"
        "    except OSError as exc: print(type(exc).__name__)\n"
        "for path in ('../exit.json', '../wish', '../supervisor.json'):\n"
        "    try: pathlib.Path(path).write_text('{}')\n"
        "    except OSError as exc: print(type(exc).__name__)\n"
        "pathlib.Path('../outputs/mine').write_text('x')"
    )
    job = run([PYTHON, "-S", "-c", tries], tier)

    record = job.exit()

    assert record["code"] == 0, job.log()
    assert len(job.log().split()) == 6
    assert all(word.endswith("Error") for word in job.log().split()), job.log()


@pytest.mark.skipif(BEST < 2, reason="bubblewrap does not work on this machine")
def test_sandbox_job_sees_no_other_process(run):
    job = run([PYTHON, "-S", "-c", "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))"])

    job.exit()

    assert int(job.log()) <= 3


def test_records_of_another_boot_or_process_are_dead():
    me = {"pid": os.getpid(), "start_ticks": records.start_ticks(os.getpid()), "boot_id": records.boot_id()}

    assert records.is_alive(me)
    assert not records.is_alive({**me, "boot_id": "another"})
    assert not records.is_alive({**me, "start_ticks": 1})
    assert not records.is_alive(None)


HOG = """
import os, sys, time
block = bytearray(int(sys.argv[1]) << 20)
if os.fork():
    time.sleep(60)
else:
    held = [bytearray(8 << 20) for _ in iter(int, 1) if time.sleep(0.02) is None]
"""


@pytest.mark.parametrize("tier", TIERS)
def test_f10_supervisor_ends_a_job_over_its_memory_with_its_children(run, tier):
    job = run([PYTHON, "-S", "-c", HOG, "40"], tier, memory_bytes=120 << 20)

    record = job.exit()

    assert (record["limit"], record["killed"]) == ("memory", True)
    assert 120 << 20 <= record["held_bytes"] < 400 << 20
    assert job.programs() == []
    assert "[program] over_memory limit_bytes=" in job.log()


SHARED = """
import mmap, os, time
pages = mmap.mmap(-1, 60 << 20)
pages.write(b"x" * (60 << 20))
for _child in range(3):
    if os.fork() == 0:
        break
pages.seek(0)
for _page in range(15):
    len(pages.read(4 << 20))
time.sleep(1.5)
"""


def test_supervisor_counts_memory_that_processes_share_once(run):
    job = run([PYTHON, "-S", "-c", SHARED], memory_bytes=150 << 20)

    record = job.exit()

    assert (record["limit"], record["code"]) == ("", 0)
