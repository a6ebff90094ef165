"""Who starts a supervisor is killed, or stops listening, at any step of that: the job runs once, to its own end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long_form import first
from tests.running import printed
from tests.running import wait_for as until
from tests.workers.launched import ended, node, placed
from tests.workers.supervised import BEST, MAIN, PYTHON, Run
from workers.core.models import Attempt
from workers.core.runs import RunDir
from workers.execution import launch as launching
from workers.execution import supervisors
from workers.execution.agent.attempt_monitor import AttemptMonitor
from workers.supervisor import claims, records

__all__ = ["node", "placed"]  # fixtures

KILLED = Path(__file__).with_name("killed_starter.py")
STEPS = 40  # some more than there are up to the answer


def unheard(argv: list[str]) -> int:
    """How a process ended that writes into pipes which nobody reads any more."""
    heard, said = os.pipe()
    os.close(heard)
    try:
        return subprocess.run(
            argv, check=False, stdout=said, stderr=said, start_new_session=True, timeout=90
        ).returncode
    finally:
        os.close(said)


@pytest.mark.parametrize("whom", first(1, ["process", "group"]))
@pytest.mark.parametrize("step", range(STEPS))
def test_supervisor_runs_once_whenever_its_starter_is_killed(tmp_path, step, whom):
    job = Run(tmp_path / "run", BEST, ["sh", "-c", "echo once; sleep 0.1; exit 7"])

    unheard([PYTHON, "-I", "-S", str(KILLED), str(MAIN), str(job.path), str(step), whom])
    until(lambda: job.supervisor or job.start() in (0, 3))  # as the agent comes again where there is none
    record = job.exit()

    assert (record["code"], record["error"], job.log()) == (7, "", "once\n")


def test_killed_starters_are_killed_at_the_step_that_is_named(tmp_path):
    codes = []
    for step in (0, 10, 1000):
        job = Run(tmp_path / str(step), 0, ["true"])
        codes.append(unheard([PYTHON, "-I", "-S", str(KILLED), str(MAIN), str(job.path), str(step), "process"]))

    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0]


def starter(path: Path, code: str) -> Path:
    """A program in place of the one that starts supervisors; `main(run)` does what that does."""
    path.write_text(
        "import os, subprocess, sys, time\n"
        f"main = lambda run: subprocess.run([sys.executable, '-I', '-S', {str(MAIN)!r}, run]).returncode\n{code}\n"
    )
    return path


def killed_at(step: int) -> str:
    argv = f"['python', '-I', '-S', {str(KILLED)!r}, {str(MAIN)!r}, sys.argv[1], '{step}', 'process']"
    return f"os.execv(sys.executable, {argv})"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "timeout_s"),
    [
        ("os.kill(os.getpid(), 9)", 90),
        (killed_at(0), 90),
        (killed_at(10), 90),
        (killed_at(30), 90),
        ("main(sys.argv[1]); os.kill(os.getpid(), 9)", 90),
        ("main(sys.argv[1]); time.sleep(60)", 3),
        ("time.sleep(60)", 0.2),
        ("main(sys.argv[1]); sys.exit('and yet it said so')", 90),
    ],
)
def test_launching_leaves_a_jobs_fate_to_its_program(placed, tmp_path, monkeypatch, code, timeout_s):
    job, attempt = placed([sys.executable, "-S", "-c", "print('once')"])

    with monkeypatch.context() as patch:
        patch.setattr(supervisors._forks, "request", lambda home: None)
        patch.setattr(supervisors, "SUPERVISOR", starter(tmp_path / "starter.py", code))
        patch.setattr(supervisors, "START_TIMEOUT_S", timeout_s)
        launching.start(attempt.pk)
    launching.start(attempt.pk)  # as the agent comes again
    ended(job)
    AttemptMonitor(attempt).check(Attempt.objects.select_related("job__cluster").get(pk=attempt.pk))
    job.refresh_from_db()

    assert (job.state, job.reason) == ("succeeded", "done")
    assert printed(RunDir.for_attempt(job.pk, 1).log) == "once\n"


@pytest.mark.django_db
def test_launching_holds_back_a_supervisor_that_comes_while_its_run_is_prepared_again(placed, kind):
    """Its starter was killed; what root writes now would else go into folders that are the job's already."""
    job, attempt = placed([sys.executable, "-S", "-c", "print('once')"])
    prepare, home, late, begun = kind.prepare, RunDir.for_attempt(job.pk, 1).path, [], []

    def again(job, attempt, run):
        launch = prepare(job, attempt, run)
        late.append(subprocess.Popen([PYTHON, "-I", "-S", str(MAIN), str(home)]))
        until(lambda: waits_for(home / ".prepare") or (home / records.SUPERVISOR).exists())
        begun.append((home / records.SUPERVISOR).exists())
        return launch

    home.mkdir(parents=True)
    launching._prepare(attempt, 0, launching.by_rank(attempt)[0], RunDir.for_attempt(job.pk, 1), home)
    kind.prepare = again
    launching.start(attempt.pk)
    ended(job)
    late[0].wait(90)
    job.refresh_from_db()

    assert begun == [False]
    assert job.state in ("starting", "running")
    assert printed(RunDir.for_attempt(job.pk, 1).log) == "once\n"


def waits_for(lock: Path) -> bool:
    """Whether somebody waits for it."""
    try:
        inode = f":{lock.stat().st_ino} "
    except FileNotFoundError:
        return False
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.django_db
def test_launching_prepares_the_first_part_of_a_gang_once_since_the_others_may_run(placed, kind):
    job, attempt = placed(["true"])
    attempt.job.nodes = 2
    home, run, calls = RunDir.for_attempt(job.pk, 1).path, RunDir.for_attempt(job.pk, 1), []
    home.mkdir(parents=True)
    prepare = kind.prepare
    kind.prepare = lambda job, attempt, run: calls.append(1) or prepare(job, attempt, run)

    for _ in range(2):
        assert launching._prepare(attempt, 0, launching.by_rank(attempt)[0], run, home)

    assert calls == [1]


@pytest.mark.django_db
def test_launching_says_why_a_supervisor_could_not_begin_and_nobody_begins_it_later(placed, tmp_path, monkeypatch):
    job, attempt = placed([sys.executable, "-S", "-c", "print('never')"])
    home = RunDir.for_attempt(job.pk, 1).path

    monkeypatch.setattr(supervisors._forks, "request", lambda home: None)
    monkeypatch.setattr(supervisors, "SUPERVISOR", starter(tmp_path / "starter.py", "sys.exit('no room for it')"))
    launching.start(attempt.pk)
    job.refresh_from_db()

    assert (job.state, job.reason, str(job.message)) == (
        "failed", "launch_failed", "The job could not be started: no room for it",
    )  # fmt: skip
    assert subprocess.run([PYTHON, "-I", "-S", str(MAIN), str(home)], check=False, timeout=90).returncode == 3
    assert not (home / records.LOG).exists()


@pytest.mark.django_db
def test_launching_says_what_the_supervisor_says_of_a_disk_that_takes_no_record(placed):
    job, attempt = placed(["true"])
    (RunDir.for_attempt(job.pk, 1).path / ".claim").mkdir(parents=True)

    launching.start(attempt.pk)
    job.refresh_from_db()

    assert (job.state, job.reason) == ("failed", "launch_failed")
    assert "IsADirectoryError" in str(job.message)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("why", "said"),
    [
        ({"error": "The container engine of node"}, ("failed", "launch_failed")),
        ({"requested": "stop"}, ("stopped", "owner")),
    ],
)
def test_attempt_monitor_ends_what_was_refused_by_somebody_killed_before_he_could_say_so(placed, why, said):
    job, attempt = placed(["true"])
    home = RunDir.for_attempt(job.pk, 1).path
    home.mkdir(parents=True)
    assert claims.refuse(home, **why)

    AttemptMonitor(attempt).check(Attempt.objects.select_related("job__cluster").get(pk=attempt.pk))
    job.refresh_from_db()

    assert (job.state, job.reason) == said
