"""The end of a job is certain: whatever a job did to its sandbox, its supervisor ends it in time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

import pytest

from tests.running import wait_for as until
from tests.workers.supervised import BEST, PYTHON, Run
from workers.supervisor import processes, records, sweep

libc = ctypes.CDLL(None, use_errno=True)
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
ENDS_WHEN_TOLD = ["sh", "-c", "while [ ! -e $RUN/code/end ]; do sleep 0.05; done; exit 3"]
DEAF = 'trap "" TERM; echo up; while :; do sleep 0.05; done'
LEADERLESS = """
import ctypes, signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=lambda: (print("up", flush=True), time.sleep(1000))).start()
ctypes.CDLL(None).pthread_exit(None)
"""
TIMES = {"WAKE_S": 0.3, "HELD_S": 0.9, "_LOOK_S": 0.1}
needs_bubblewrap = pytest.mark.skipif(BEST < 2, reason="bubblewrap does not work on this machine")


def layers(job: Run) -> list[int]:
    """The two processes of bubblewrap, the outer one first; once the command runs."""
    outer = job.supervisor["child"]["pid"]
    [inner] = until(lambda: [pid for pid in processes.children(outer) if processes.children(pid)])
    return [outer, inner]


@contextlib.contextmanager
def held_by_a_debugger(pid: int) -> Iterator[None]:
    """Stop a process as a debugger does: no SIGCONT lets it go on."""
    assert libc.ptrace(SEIZE, pid, 0, 0) == 0
    assert libc.ptrace(INTERRUPT, pid, 0, 0) == 0
    until(lambda: processes.state(pid) == "t")
    try:
        yield
    finally:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, WALL | os.WNOHANG)


@needs_bubblewrap
@pytest.mark.parametrize("layer", [0, 1])
def test_supervisor_hears_the_end_of_a_command_whose_sandbox_was_stopped(run, layer):
    job = run(ENDS_WHEN_TOLD, watch_times=TIMES)
    os.kill(layers(job)[layer], signal.SIGSTOP)  # as a job does that may trace the first process of its sandbox
    (job.path / "code/end").touch()

    record = job.exit()

    assert (record["code"], record["killed"], record["unkillable"]) == (3, False, [])
    assert job.programs() == []


@needs_bubblewrap
@pytest.mark.parametrize("layer", [0, 1])
def test_supervisor_ends_what_a_debugger_holds_around_an_ended_command_and_keeps_its_code(run, layer):
    job = run(ENDS_WHEN_TOLD, watch_times=TIMES)

    with held_by_a_debugger(layers(job)[layer]):
        (job.path / "code/end").touch()
        record = job.exit()

    assert record["code"] == (3 if layer == 1 else None)  # the inner one had seen the code, and nobody else
    assert "[program] withheld" in job.log()
    assert job.programs() == []


@needs_bubblewrap
@pytest.mark.parametrize("layer", [0, 1])
def test_supervisor_stop_ends_a_job_whose_sandbox_stands_still(run, layer):
    job = run(["sh", "-c", DEAF], stop_grace_s=0.3)
    until(lambda: "up" in job.log())

    with held_by_a_debugger(layers(job)[layer]):
        job.wish("stop")
        record = job.exit()

    assert (record["requested"], record["killed"], record["unkillable"]) == ("stop", True, [])
    assert job.programs() == []


@pytest.mark.parametrize("tier", range(BEST + 1))
def test_supervisor_kill_waits_for_nothing(run, tier):
    job = run(["sh", "-c", DEAF], tier, stop_grace_s=1000, term_grace_s=1000)
    until(lambda: "up" in job.log())
    job.wish("stop")
    until(lambda: job.state() == "stopping")

    job.wish("kill")
    record = job.exit()

    assert (record["requested"], record["killed"]) == ("stop", True)
    assert job.programs() == []


@pytest.mark.parametrize("tier", range(BEST + 1))
def test_supervisor_stop_ends_a_program_whose_first_thread_is_over(run, tier):
    job = run([PYTHON, "-S", "-c", LEADERLESS], tier, stop_grace_s=0.3)
    until(lambda: "up" in job.log())

    job.wish("stop")

    assert job.exit()["signal"] == "SIGKILL"
    assert job.programs() == []


def test_supervisor_lets_a_program_whose_first_thread_is_over_go_on(run):
    job = run(
        [PYTHON, "-S", "-c", LEADERLESS.replace("1000", "2.5")], watch_times=TIMES
    )  # longer than an end may be withheld

    assert (job.exit()["code"], job.exit()["killed"]) == (0, False)


def test_supervisor_ends_a_job_whose_own_daemon_withholds_the_end_of_its_command(run):
    holds = (
        "import ctypes, os, time\n"
        "if os.fork() == 0:\n"
        "    libc = ctypes.CDLL(None)\n"
        f"    print('held', libc.ptrace({SEIZE}, os.getppid(), 0, 0), flush=True)\n"
        "    time.sleep(1000)\n"
        "time.sleep(0.5)\n"
        "os._exit(4)\n"
    )
    job = run([PYTHON, "-S", "-c", holds], 0, calls=["ptrace"], watch_times=TIMES)

    record = job.exit()

    assert "held 0" in job.log()
    assert record["code"] == 4
    assert job.programs() == []


def test_sweep_names_what_no_kill_ends(monkeypatch):
    monkeypatch.setattr(sweep, "REAP_S", 0.05)

    assert sweep.sweep(lambda: [2**22 + 1], [], lambda: None, None) == (1, [2**22 + 1])


def test_records_ask_a_supervisor_of_before_an_upgrade_to_stop_where_it_does_not_know_kill(tmp_path):
    records.write(tmp_path / records.SUPERVISOR, {"pid": 1, "protocol": 2})

    records.write_request(tmp_path, "kill")

    assert (tmp_path / records.REQUESTED).read_text() == "stop"
    assert records.compatible_request(tmp_path, "kill") == "stop"
