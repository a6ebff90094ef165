"""The fork server: what it starts is a supervisor like any other, and nothing depends on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.running import HERE
from tests.running import wait_for as until
from tests.workers.supervised import BEST, Run
from workers.execution import supervisors
from workers.resources.nodes.telemetry import processes as services
from workers.supervisor import processes, records

ONCE = ["sh", "-c", "echo once; exit 7"]
LONG = ["sh", "-c", "echo once; while [ ! -e ../outputs/end ]; do sleep 0.05; done; exit 7"]


def ask(forks, path):
    pipe = forks.request(path)
    return "" if pipe is None else forks.answer(pipe, time.monotonic() + 20)


@pytest.fixture
def forks():
    made = supervisors.ForkServer()
    yield made
    made.close()


@pytest.fixture
def run(tmp_path):
    made = []

    def one(argv, tier=BEST):
        made.append(Run(tmp_path / str(len(made)), tier, argv))
        return made[-1]

    yield one
    for job in made:
        end(job)
        if job.supervisor:
            job.exit()


def end(job: Run) -> None:
    (job.path / "outputs" / "end").touch()


def seen(job: Run) -> dict[str, object]:
    """What a supervisor looks like from outside; file descriptors by what they are."""
    proc = Path(f"/proc/{job.supervisor['pid']}")
    until(lambda: job.state() == "running")
    status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
    links = [os.readlink(entry) for entry in (proc / "fd").iterdir()]
    _state, parent, group, session = records.text(proc / "stat").rsplit(")", 1)[1].split()[:4]
    return {
        "command": [word.replace(str(job.path), "RUN") for word in services_words(proc)],
        "environment": (proc / "environ").read_bytes(),
        "files": sorted(link.replace(str(job.path), "RUN").partition(":[")[0] for link in links),
        "folder": os.readlink(proc / "cwd"),
        "leads": group == session == str(job.supervisor["pid"]),
        "parent": parent,
        "signals": [status[name] for name in ("SigBlk", "SigIgn", "SigCgt")],
        "umask": status["Umask"],
    }


def services_words(proc: Path) -> list[str]:
    return (proc / "cmdline").read_bytes().decode().rstrip("\0").split("\0")


def test_fork_server_makes_supervisors_that_look_like_those_started_directly(run, forks):
    forked, direct = run(LONG), run(LONG)

    assert ask(forks, forked.path) == "started"
    supervisors._start_directly(direct.path)

    assert seen(forked) == seen(direct)
    words = services_words(Path(f"/proc/{forked.supervisor['pid']}"))
    assert services.identify(words) == ("supervisor", str(forked.path))


@pytest.mark.parametrize("tier", range(BEST + 1))
def test_fork_server_starts_a_run_once_however_often_requested(run, forks, tier):
    job = run(ONCE, tier)

    answers = [ask(forks, job.path) for _ in range(3)]
    record = job.exit()

    assert answers == ["started", "already", "already"]
    assert (record["code"], job.log()) == (7, "once\n")


def test_fork_server_answers_many_at_once(run, forks):
    jobs = [run(ONCE, 0) for _ in range(12)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda job: ask(forks, job.path), jobs))

    assert answers == ["started"] * 12
    assert {job.exit()["code"] for job in jobs} == {7}


def test_fork_server_says_why_a_supervisor_could_not_begin(run, forks):
    job = run(ONCE)
    (job.path / ".claim").mkdir()

    assert ask(forks, job.path).startswith("failed: IsADirectoryError")


def test_fork_server_that_was_killed_leaves_its_jobs_running_and_starts_anew(run, forks):
    first, second = run(LONG), run(ONCE)
    ask(forks, first.path)
    old = forks.process
    old.kill()
    old.wait()

    answer = ask(forks, second.path)
    end(first)

    assert (answer, forks.process.pid != old.pid) == ("started", True)
    assert (first.exit()["code"], second.exit()["code"]) == (7, 7)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_supervisors_start_whatever_becomes_of_the_fork_server(run, monkeypatch, forks, number):
    """It dies, or hangs, just when it is asked."""
    monkeypatch.setattr(supervisors, "_forks", forks)
    monkeypatch.setattr(supervisors, "START_TIMEOUT_S", 0.2 if number == signal.SIGSTOP else 20)
    jobs = [run(ONCE), run(ONCE)]
    forks._open()
    until(lambda: b"fork_server.py\0" in Path(f"/proc/{forks.process.pid}/cmdline").read_bytes())
    monkeypatch.setattr(forks.process, "poll", lambda: None)  # nobody noticed yet

    os.kill(forks.process.pid, number)
    for job in jobs:
        try:
            supervisors.start(job.path)
        except supervisors.NoAnswer:
            monkeypatch.setattr(supervisors, "START_TIMEOUT_S", 20)
            supervisors.start(job.path)  # as the agent comes again

    assert [(job.exit()["code"], job.log()) for job in jobs] == [(7, "once\n")] * 2


def test_fork_server_makes_way_for_newer_code(run, tmp_path, monkeypatch, forks):
    code = tmp_path / "workers" / "supervisor"
    shutil.copytree(HERE / "workers" / "supervisor", code, ignore=shutil.ignore_patterns("__pycache__"))
    (code.parent / "__init__.py").touch()
    monkeypatch.setattr(supervisors, "FORK_SERVER", code / "fork_server.py")
    jobs = [run(ONCE, 0) for _ in range(3)]
    answers = [ask(forks, jobs[0].path)]
    old = forks.process

    (code / "spawn.py").write_text((code / "spawn.py").read_text() + "\n# newer\n")
    answers += [ask(forks, job.path) for job in jobs[1:]]

    assert answers == ["started", "", "started"]
    assert (old.wait(), forks.process.pid != old.pid) == (0, True)


def test_fork_server_ends_with_whose_it_is_and_its_jobs_go_on(run):
    job = run(LONG)
    code = (
        "import sys; from pathlib import Path; from workers.execution import supervisors\n"
        "supervisors.start(Path(sys.argv[1])); print(supervisors._forks.process.pid, flush=True); sys.stdin.read()"
    )
    ours = subprocess.Popen(
        [sys.executable, "-c", code, str(job.path)], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    server = int(ours.stdout.readline())
    before = processes.state(server)

    ours.kill()
    ours.communicate()

    assert before != "X"
    assert until(lambda: processes.state(server) in "XZ")
    assert records.is_alive(job.supervisor)
    end(job)
    assert (job.exit()["code"], job.log()) == (7, "once\n")
