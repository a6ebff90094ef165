"""The exec server inside real sandboxes, in every tier this machine offers."""

from __future__ import annotations

import contextlib
import os
import signal
import socket

import pytest

from tests.running import wait_for as until
from tests.workers.exec_client import WAITS, Asked, served, server_of
from tests.workers.supervised import BEST, PYTHON
from workers.supervisor import processes
from workers.supervisor.inside import dispatcher, sessions

__all__ = ["served"]  # a fixture
pytestmark = pytest.mark.sockets("exec servers of jobs")
TIERS = pytest.mark.parametrize("tier", range(BEST + 1))
#: Says each TERM that it hears, and ends a while after the first.
COUNTS_TERMS = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("TERM", flush=True))
print("up", flush=True)
signal.pause()
for _ in range(8): time.sleep(0.1)
os._exit(5)
"""
LISTENS = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print("up", server.getsockname()[1], flush=True)
    while True:
        one, _ = server.accept()
        said = one.makefile("rb").read()
        one.sendall(said[::-1])
        one.close()
"""
ON_TERMINAL = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
print(tuple(os.get_terminal_size()), os.ttyname(0))
input()
print(tuple(os.get_terminal_size()))
time.sleep(600)
"""
WORLD = """
grep SigIgn /proc/$$/status
env | cut -d= -f1 | sort
ls /proc/$$/fd
exec $0 -I -S -c 'import os; os.waitpid(-1, os.WNOHANG)'
"""


@TIERS
def test_exec_server_leaves_the_end_of_the_command_as_it_is(served, tier):
    hows = ("exit 3", "kill -SEGV $$", "kill -9 $$", "exit 0")
    ends = [served(["sh", "-c", how], tier, started=False).exit() for how in hows]

    told = [(end["code"], end["signal"]) for end in ends]
    assert told == [(3, None), (None, "SIGSEGV"), (None, "SIGKILL"), (0, None)]
    assert not any(end["killed"] for end in ends)


@TIERS
def test_exec_server_leaves_the_command_its_world(served, run, tier):
    """No child that it does not know, no signal ignored, no variable that nobody gave, nothing of ours open."""
    program = ["sh", "-c", WORLD, PYTHON]
    beside, alone = served(program, tier, started=False), run(program, tier)

    assert (beside.exit()["code"], alone.exit()["code"]) == (1, 1)
    assert beside.log() == alone.log()
    assert "No child processes" in beside.log()


def test_exec_server_says_what_could_not_be_started(served):
    job = served(["/no/such/program"], started=False)

    assert job.exit()["code"] == 127
    assert "could not start '/no/such/program': No such file" in job.log()


@TIERS
def test_session_has_codes_both_outputs_and_the_jobs_environment(served, tier):
    job = served(WAITS, tier, env={"OWN": "given"})
    ask = {"act": "session", "env": {"LC_X": "mine", "PATH": "/evil", "LD_PRELOAD": "x"}}

    with Asked(job.socket, command="echo $OWN $LC_X $PATH; echo no >&2; exit 7", **ask) as one:
        assert one.finish() == {"code": 7}
    with Asked(job.socket, command="kill -TERM $$", **ask) as other:
        assert other.finish() == {"signal": "TERM"}

    assert one.said == {b"O": b"given mine /usr/bin:/bin\n", b"R": b"no\n"}


def test_session_takes_megabytes_of_input_and_gives_them_back(served):
    job, sent = served(WAITS), os.urandom(3 << 20)

    with Asked(job.socket, act="session", command="cat") as one:
        pid = os.fork()
        if pid == 0:
            for at in range(0, len(sent), 65536):
                one.tell(b"I", sent[at : at + 65536])
            one.tell(b"E")
            os._exit(0)
        end = one.finish()
        os.waitpid(pid, 0)

    assert end == {"code": 0}
    assert one.said[b"O"] == sent


@TIERS
def test_terminal_knows_its_size_and_ctrl_c(served, tier):
    job = served(WAITS, tier)
    pty = {"term": "xterm", "rows": 30, "columns": 100}
    program = f'"{PYTHON}" -I -S -c "{ON_TERMINAL}"; echo code $?'

    with Asked(job.socket, act="session", command=program, pty=pty) as one:
        one.until(b"(100, 30) /dev/pts/")
        one.tell(b"W", b"50 132")
        one.tell(b"I", b"\n")
        one.until(b"(132, 50)")
        one.tell(b"I", b"\x03")
        one.finish()

    assert one.said[b"O"].endswith(b"code 130\r\n")


def test_ctrl_c_comes_through_while_nobody_reads(served):
    job = served(WAITS)
    pty = {"term": "xterm", "rows": 24, "columns": 80}

    with Asked(job.socket, act="session", command="trap 'exit 9' INT; yes", pty=pty) as one:
        one.until(b"y\r\ny")
        one.tell(b"I", b"\x03")
        until(lambda: not any(processes.name(pid) == "yes" for pid in job.programs()))
        assert one.finish() == {"code": 9}


@TIERS
def test_hang_up_ends_what_held_the_terminal(served, tier):
    job = served(WAITS, tier)
    pty = {"term": "xterm", "rows": 24, "columns": 80}
    with Asked(job.socket, act="session", command="echo there; sleep 601; true", pty=pty) as one:
        one.until(b"there")

    until(lambda: not any(processes.name(pid) == "sleep" for pid in job.programs()))
    assert job.state() == "running"


@TIERS
def test_stop_sends_one_term_to_the_command(served, tier):
    job = served([PYTHON, "-I", "-S", "-c", COUNTS_TERMS], tier, stop_grace_s=60.0)
    job.wish("stop")

    assert job.exit()["code"] == 5
    assert job.log().count("TERM") == 1


@TIERS
def test_killed_server_takes_nothing_along(served, tier):
    job = served(WAITS, tier)
    os.kill(until(lambda: server_of(job)), signal.SIGKILL)

    until(lambda: exec_refused(job))
    assert job.state() == "running"
    job.wish("stop")
    assert job.exit()["requested"] == "stop"


def exec_refused(job):
    try:
        Asked(job.socket, act="session", command="true").close()
    except ConnectionRefusedError:
        return True
    except ConnectionError:  # it was in the queue of the one that is killed
        return False
    return False


@TIERS
def test_paused_job_answers_nothing_and_goes_on_answering_later(served, tier):
    job = served(WAITS, tier)
    job.wish("pause")
    until(lambda: job.state() == "paused")

    with pytest.raises(TimeoutError):
        Asked(job.socket, patience_s=0.5, act="session", command="true")

    job.wish("run")
    with Asked(job.socket, act="session", command="exit 4") as one:
        assert one.finish() == {"code": 4}


@TIERS
def test_port_carries_bytes_and_half_closes(served, tier):
    job = served([PYTHON, "-I", "-S", "-c", LISTENS], tier)
    port = int(job.log().split()[1])
    sent = os.urandom(300_000)

    with Asked(job.socket, act="port", port=port) as one:
        assert one.answer == {"ok": True}
        one.socket.sendall(sent)
        one.socket.shutdown(1)
        assert one.bytes() == sent[::-1]


def test_port_of_somebody_else_is_refused(served):
    """The network is that of the machine: broker and database must not be reached by way of a job."""
    job = served(WAITS)
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        number = foreign.getsockname()[1]
        with Asked(job.socket, act="port", port=number) as one:
            assert one.answer == {"error": f"nothing of this job listens on port {number}"}


@pytest.mark.parametrize(
    "request_", [{}, {"act": "no"}, {"act": ["port"]}, {"act": "port", "port": None}, {"act": "unix"}]
)
def test_odd_request_is_refused_and_hurts_nobody(served, request_):
    job = served(WAITS)

    with Asked(job.socket, **request_) as one:
        assert set(one.answer) == {"error"}
    with Asked(job.socket, act="session", command="true") as next_one:
        assert next_one.finish() == {"code": 0}


def test_socket_is_its_owners_alone_and_goes_with_the_job(served):
    job = served(WAITS)
    assert job.socket.is_socket()
    job.wish("stop")
    job.exit()

    assert not job.socket.parent.exists()


def test_job_without_a_way_in_runs_all_the_same(run, tmp_path):
    job = run(["sh", "-c", "exit 6"], exec_socket=str(tmp_path / ("long" * 40) / "exec"))

    assert job.exit()["code"] == 6
    assert "[environment] not_reachable" in job.log()


def test_act_beyond_the_most_waits_for_one_to_end(served):
    job = served(WAITS)
    with contextlib.ExitStack() as held:
        for _ in range(dispatcher.MAX_CONNECTIONS):
            one = held.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(60)
            one.connect(str(job.socket))
        with pytest.raises(TimeoutError):
            Asked(job.socket, patience_s=1.0, act="session", command="true")

    with Asked(job.socket, act="session", command="exit 3") as later:
        assert later.finish() == {"code": 3}


def test_server_goes_on_where_no_process_may_be_added(monkeypatch):
    def none():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as asker:
        assert dispatcher._forked(listener, lambda connection: None, ()) == set()
        asker.settimeout(20)
        assert b"temporarily" in asker.makefile("rb").read()


@pytest.mark.parametrize(("group", "code"), [(0, None), (-1, None), (1234, 0)])
def test_signal_without_a_program_reaches_nobody(group, code, monkeypatch):
    told = []
    monkeypatch.setattr(os, "killpg", lambda *given: told.append(given))
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: group)
    talk = sessions.Conversation.__new__(sessions.Conversation)
    talk.terminal, talk.pid, talk.code = 3, 1234, code

    talk._signal(signal.SIGTERM)

    assert told == []
