"""Sandbox tier 4: the supervisor with a container engine, a small one of our own and the machine's where it answers."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.running import wait_for as until
from tests.workers.engines import engine, real, run
from workers.execution.agent import containers
from workers.supervisor import container, engines, processes, records
from workers.supervisor.container import Container
from workers.supervisor.engine import Engine, Refused, Unanswered

pytestmark = pytest.mark.sockets("a container engine's double")
__all__ = ["engine", "real", "run"]  # fixtures


def there(engine, job) -> bool:
    """Whether the job's container exists."""
    try:
        Engine(str(engine.socket)).state(container.name(str(job.path)))
    except Refused:
        return False
    except Unanswered:
        return False
    return True


def test_container_runs_a_program_records_its_end_and_leaves_nothing(run, engine):
    job = run(["sh", "-c", "echo out; echo err >&2; exit 3"])

    record = job.exit()

    assert (record["code"], record["signal"], record["requested"], record["error"]) == (3, None, "run", "")
    assert job.log() == "out\nerr\n"
    assert not there(engine, job)
    assert job.supervisor["tier"] == 4


def test_container_crash_is_named_by_its_signal(run, engine):
    assert run([engine.python, "-S", "-c", "import os; os.kill(os.getpid(), 11)"]).exit()["signal"] == "SIGSEGV"


def test_f01_container_passes_names_to_the_program_as_they_are(run, engine):
    odd = ["; touch p", "$(id)", "`id`", "a\nb", "'\"", "--help", "$1", ""]
    job = run([engine.python, "-S", "-c", "import sys; print(sys.argv[1:])", *odd])

    job.exit()

    assert job.log().strip() == repr(odd)
    assert not (job.path / "code" / "p").exists()


@pytest.mark.parametrize(("own", "found"), [("/own", "/saved:/own"), ("", "/saved")])
def test_container_finds_what_is_beside_its_image_before_its_own(run, own, found):
    told = {"AIP_PATH": "/saved/bin", "AIP_PYTHONPATH": "/saved", **({"PYTHONPATH": own} if own else {})}
    job = run(["sh", "-c", 'echo "$PYTHONPATH"; echo "$PATH"'], env={"PATH": os.environ["PATH"]} | told)

    job.exit()

    assert job.log().splitlines() == [found, f"/saved/bin:{os.environ['PATH']}"]


def test_container_log_comes_whole_in_order_and_once(run):
    job = run(["sh", "-c", "seq 1 60000; printf 'no end of line'"])

    job.exit()

    assert job.log() == "".join(f"{number}\n" for number in range(1, 60_001)) + "no end of line"


def test_container_paused_stands_still_and_goes_on(run):
    job = run(["sh", "-c", "while :; do echo x; sleep 0.01; done"], stop_grace_s=0.4)
    until(job.log)
    job.wish("pause")
    until(lambda: job.state() == "paused")
    before = len(job.log())
    control = (job.path / records.CONTROL).read_text()
    time.sleep(0.3)  # pause: it may write nothing meanwhile
    after = len(job.log())

    job.wish("run")
    until(lambda: job.state() == "running")
    until(lambda: len(job.log()) > after)
    job.wish("stop")
    record = job.exit()

    assert (before, control, record["requested"]) == (after, "pause", "stop")
    assert record["paused_s"] > 0.2


def test_container_paused_can_be_stopped(run, engine):
    job = run(["sleep", "100"])
    job.wish("pause")
    until(lambda: job.state() == "paused")

    job.wish("stop")

    assert job.exit()["signal"] == "SIGTERM"
    assert not there(engine, job)


def test_container_that_ignores_sigterm_is_killed(run, engine):
    job = run(["sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done'], stop_grace_s=0.3)
    until(lambda: "up" in job.log())

    job.wish("stop")
    record = job.exit()

    assert (record["signal"], record["killed"]) == ("SIGKILL", True)
    assert not there(engine, job)


def test_container_program_below_a_shell_gets_sigterm_and_may_save(run, engine):
    saves = (
        "import os, signal, sys, time\n"  # print in a handler may meet the print that it interrupts
        "signal.signal(15, lambda *_: (os.write(1, b'saved\\n'), sys.exit(0)))\n"
        "os.write(1, b'up\\n')\ntime.sleep(100)"
    )
    job = run(["sh", "-c", f'{engine.python} -S -c "$0"; echo after', saves])
    until(lambda: "up" in job.log())

    job.wish("finish")

    assert job.exit()["code"] == 0
    assert job.log().split() == ["up", "saved", "after"]


def test_container_ends_daemonised_processes_with_the_job(run, engine):
    hides = (
        "import os, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)\n"
        "os.wait()"
    )
    job = run([engine.python, "-S", "-c", hides])

    job.exit()

    assert until(lambda: job.programs() == [])


@pytest.mark.parametrize("paused", [False, True])
def test_container_ends_with_its_killed_supervisor(run, engine, paused):
    job = run(["sh", "-c", "echo up; sleep 1000"])
    until(lambda: "up" in job.log())
    if paused:
        job.wish("pause")
        until(lambda: job.state() == "paused")

    os.kill(job.supervisor["pid"], signal.SIGKILL)

    until(lambda: not there(engine, job))
    until(lambda: job.programs() == [])
    assert records.read(job.path / records.EXIT) is None
    assert job.start() == 3  # and nobody starts it here again


def test_container_sweep_ends_a_container_without_a_supervisor(run, engine, settings, monkeypatch):
    settings.DATA_ROOT = "/test"
    monkeypatch.setattr(engines, "sockets", lambda *_: [str(engine.socket)])
    kept = run(["sleep", "1000"])
    job = run(["sleep", "1000"])
    supervisor_pid = job.supervisor["pid"]
    processes.send(
        [*processes.descendants(supervisor_pid), supervisor_pid], signal.SIGSTOP
    )  # a guard that is killed first says nothing
    processes.send([*processes.descendants(supervisor_pid), supervisor_pid], signal.SIGKILL)
    until(lambda: not records.is_alive(job.supervisor))
    assert there(engine, job)

    containers.sweep()

    assert not there(engine, job)
    assert there(engine, kept)
    assert containers.remove(job.path)


def test_container_survives_a_killed_guard(run, engine):
    job = run(["sh", "-c", "echo up; while [ ! -e ../outputs/go ]; do sleep 0.02; done"])
    until(lambda: "up" in job.log())
    processes.send(processes.children(job.supervisor["pid"]), signal.SIGKILL)

    (job.path / "outputs" / "go").touch()

    assert job.exit()["code"] == 0
    assert not there(engine, job)


def test_container_run_is_started_once_however_often_requested(run):
    job = run(["sh", "-c", "echo once; sleep 0.2"])
    again = [job.start() for _ in range(3)]

    job.exit()

    assert again == [3, 3, 3]
    assert job.log() == "once\n"


def test_container_start_reports_a_missing_image_and_leaves_nothing(run, engine):
    job = run(["true"], image="nobody/has-this:1")

    record = job.exit()

    assert "o such image" in record["error"]
    assert "[command] not_started" in job.log()
    assert not there(engine, job)


def test_container_log_names_a_program_that_is_not_in_the_image(run):
    job = run(["/no/such/program"])

    assert job.exit()["code"] == 127
    assert "/no/such/program" in job.log()


def test_f10_container_over_its_memory_limit_is_ended(run, engine):
    hog = "held = []\nwhile True: held.append(bytearray(4 << 20)); __import__('time').sleep(0.01)"
    job = run([engine.python, "-S", "-c", hog], memory_bytes=120 << 20)

    record = job.exit()

    assert record["limit"] == "memory"
    assert not there(engine, job)


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
def test_container_engine_going_away_costs_neither_job_nor_exit_code(run, engine):
    job = run(["sh", "-c", "echo up; while [ ! -e ../outputs/go ]; do sleep 0.02; done; echo late; exit 4"])
    until(lambda: "up" in job.log())
    engine.kill()
    (job.path / "outputs" / "go").touch()
    until(lambda: "engine_away" in job.log())
    before = records.read(job.path / records.EXIT)

    engine.start()
    record = job.exit()

    assert before is None
    assert (record["code"], job.log().split()[:2]) == (4, ["up", "late"])
    assert not record["node_down"]


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
def test_container_engine_stopping_its_containers_fails_no_job(run, engine):
    job = run(["sh", "-c", "echo up; exec sleep 1000"])
    until(lambda: "up" in job.log())
    engine.kill()
    engine.start()

    processes.send(processes.descendants(job.supervisor["child"]["pid"]), signal.SIGTERM)
    record = job.exit()

    assert (record["signal"], record["requested"], record["node_down"]) == ("SIGTERM", "run", True)


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
def test_container_counts_as_ended_only_when_that_is_certain(run, engine):
    job = run(["sleep", "1000"])
    supervisor_pid, first = job.supervisor["pid"], job.supervisor["child"]["pid"]
    engine.kill()
    processes.send([*processes.descendants(supervisor_pid), supervisor_pid], signal.SIGSTOP)
    processes.send([*processes.descendants(supervisor_pid), supervisor_pid], signal.SIGKILL)
    until(lambda: not records.is_alive(job.supervisor))

    while_it_runs = containers.remove(job.path)
    processes.send([*processes.descendants(first), first], signal.SIGKILL)
    until(lambda: processes.state(first) in "ZX")

    assert not while_it_runs
    assert containers.remove(job.path)
    engine.start()


@pytest.mark.parametrize("engine", ["fake"], indirect=True)
def test_container_engine_is_offered_only_where_a_trial_runs(engine, monkeypatch):
    socket = str(engine.socket)
    unseen = engines.offer("image", chosen=socket)  # this engine has no process ids of its own, as one far away
    monkeypatch.setattr(Container, "is_visible", lambda _self: True)

    found = engines.offer("image", chosen=socket, root="/d")
    unnamed = engines.offer("", chosen=socket)
    absent = engines.offer("nobody/has-this", chosen=socket)
    silent = engines.offer("image", chosen=f"{socket}.not")

    assert "not among this machine's" in unseen.why
    assert found.container["engine"] == socket
    assert [bool(offer) for offer in (unnamed, absent, silent)] == [False] * 3
    assert (unnamed.remedy, absent.remedy) == (
        "Set AIP_CONTAINER_IMAGE.",
        "Fetch it once: docker pull nobody/has-this.",
    )
    assert "may open" in silent.remedy
    assert list(engine.folder.iterdir()) == []


def test_container_engine_rootless_uses_the_agents_own_user():
    own = f"{os.geteuid()}:{os.getegid()}"

    assert engines._who({}, podman=False) == {"user": own}
    assert engines._who({"SecurityOptions": ["name=rootless"]}, podman=False) == {"user": "0:0"}
    assert engines._who({"SecurityOptions": ["name=rootless"]}, podman=True) == {"user": own, "userns": "keep-id"}
