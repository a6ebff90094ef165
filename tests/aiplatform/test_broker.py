"""The broker that `up` starts: nobody lives on beside it, and who worked while it went away goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest
from celery import Celery
from celery.worker import consumer as celerys

from aiplatform import env
from aiplatform.cli import broker
from aiplatform.lib.celery_worker import Consumer
from tests.running import free_port, wait_for

pytestmark = pytest.mark.sockets("the broker's own, in a throw-away folder")

PARENT = """
import asyncio, signal, sys
from aiplatform.cli.processes import Process, ProcessSupervisor

async def main():
    supervisor = ProcessSupervisor()
    supervisor.keep_running(Process("broker", sys.argv[1:], orphan_signal=signal.SIGKILL))
    while "broker" not in supervisor.running:
        await asyncio.sleep(0.01)
    print(supervisor.running["broker"].pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def run_dir(monkeypatch) -> Iterator[Path]:
    """A short one: the name of a socket may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="aip-") as folder:
        monkeypatch.setattr(env, "RUN_DIR", Path(folder))
        yield Path(folder)


@pytest.fixture
def server(run_dir) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(broker.command(), stdout=subprocess.DEVNULL)
    try:
        wait_for(broker.answers, 30, "the broker did not start")
        yield process
    finally:
        process.kill()
        process.wait()


def test_broker_answers_only_where_its_socket_is_and_somebody_serves_it(server, run_dir):
    assert broker.answers()

    server.send_signal(signal.SIGSTOP)
    assert not broker.answers()
    server.send_signal(signal.SIGCONT)
    wait_for(broker.answers, 30, "it did not go on")
    (run_dir / broker.SOCKET).unlink()

    assert not broker.answers()


BUSY = b"local from = redis.call('TIME')[1]; repeat until redis.call('TIME')[1] - from > 3"


def test_broker_that_is_busy_is_not_taken_for_dead(server, run_dir, monkeypatch):
    """As while it reads its file at the start, or where others leave it no processor."""
    monkeypatch.setattr(broker, "TIMEOUT_S", 0.3)
    password = (run_dir / "broker_password").read_bytes()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(run_dir / broker.SOCKET))
        link.sendall(b"AUTH %b\r\n" % password)
        assert link.recv(10).startswith(b"+OK")
        link.sendall(b"*3\r\n$4\r\nEVAL\r\n$%d\r\n%b\r\n$1\r\n0\r\n" % (len(BUSY), BUSY))
        wait_for(lambda: not _pong(run_dir), 10, "it is not busy")

        assert broker.answers()

        assert link.recv(10)  # and it went on with its work


def _pong(run_dir: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(0.3)
        link.connect(str(run_dir / broker.SOCKET))
        link.sendall(b"PING\r\n")
        try:
            return bool(link.recv(1))
        except TimeoutError:
            return False


def test_broker_that_stands_still_does_not_outlive_who_started_it(run_dir):
    """It would end later, take away the socket of its successor, and write into the same files until then."""
    with contextlib.ExitStack() as ends:
        parent = ends.enter_context(
            subprocess.Popen([sys.executable, "-c", PARENT, *broker.command()], stdout=subprocess.PIPE, text=True)
        )
        ends.callback(parent.kill)
        pid = int(next(line for line in parent.stdout if line.strip().isdigit()))
        wait_for(broker.answers, 30, "the broker did not start")
        os.kill(pid, signal.SIGSTOP)

        parent.kill()

        wait_for(lambda: not Path(f"/proc/{pid}").exists() or _is_dead(pid), 30, "it lives on")
        assert (run_dir / broker.SOCKET).exists()  # whoever comes next takes its place


def test_worker_outlives_a_broker_that_goes_away_with_work_in_its_hands(server, run_dir):
    url = f"redis+socket://:{(run_dir / 'broker_password').read_text()}@{run_dir / broker.SOCKET}"
    plain, ours = (_with_work_in_hand(kind, url) for kind in (celerys.Consumer, Consumer))
    server.kill()
    server.wait()

    with pytest.raises(AttributeError):  # once Celery does it right, ours is not needed any more
        plain.on_connection_error_after_connected(OSError("gone"))
    ours.on_connection_error_after_connected(OSError("gone"))

    assert ours.connection is None


def test_worker_takes_more_work_after_acknowledgements_that_came_too_late(server, run_dir):
    url = f"redis+socket://:{(run_dir / 'broker_password').read_text()}@{run_dir / broker.SOCKET}"
    with kombu.Connection(url, transport_options={"socket_timeout": 0.3}) as connection:
        channel = connection.default_channel
        channel.basic_qos(0, 1, False)
        queue = connection.SimpleQueue("work")
        queue.put({"task": 1})
        message = queue.get(timeout=10)
        assert not channel.qos.can_consume()
        server.send_signal(signal.SIGSTOP)

        with pytest.raises(Exception, match="Timeout"):
            message.ack()

        server.send_signal(signal.SIGCONT)
        assert channel.qos.can_consume()


def _with_work_in_hand(kind: type[celerys.Consumer], url: str) -> celerys.Consumer:
    """A consumer with a message it did not acknowledge, that waits for more work and for commands; nothing else."""
    consumer = kind.__new__(kind)
    consumer.connection = kombu.Connection(url)
    consumer.app = Celery(set_as_current=False)
    consumer.app.conf.worker_enable_prefetch_count_reduction = False
    consumer.app.conf.worker_cancel_long_running_tasks_on_connection_loss = True  # there are none, and no warning
    work = consumer.connection.SimpleQueue(kind.__module__)
    work.put({"task": 1})
    work.get(timeout=10)
    commands = consumer.connection.SimpleQueue(f"{kind.__module__}.commands", channel=consumer.connection.channel())
    with pytest.raises(commands.Empty):
        commands.get(timeout=0.01)
    return consumer


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_broker_elsewhere_that_cannot_be_used_is_named_with_what_to_do(server, run_dir, monkeypatch, capsys):
    socket_path, password = run_dir / broker.SOCKET, (run_dir / "broker_password").read_text()
    silent, away = f"redis+socket://:{password}@{run_dir}/none.sock", f"redis://:x@127.0.0.1:{free_port()}/0"
    assert "(No such file or directory)" in broker.problem_of(silent)
    assert broker.problem_of(away).endswith("does not respond (Connection refused).")
    assert "rejects commands (NOAUTH" in broker.problem_of(f"redis+socket://{socket_path}")
    assert "rejects commands (WRONGPASS" in broker.problem_of(f"redis+socket://:wrong@{socket_path}")
    assert password not in broker.problem_of(silent)
    assert broker.problem_of(f"redis+socket://:{password}@{socket_path}") == ""

    problems = [broker.problem_of(away)] * 3
    monkeypatch.setattr(broker, "problem_of", lambda _url: problems.pop() if problems else "")
    monkeypatch.setattr(broker, "ASK_S", 0.0)
    broker.report_until_it_answers(away)

    first, last = capsys.readouterr().out.splitlines()  # not a line for each check
    assert "Connection refused" in first
    assert "Start that server or correct AIP_REDIS_URL" in first
    assert "responds now" in last


def test_broker_elsewhere_that_answers_is_not_mentioned(monkeypatch, capsys):
    monkeypatch.setattr(broker, "problem_of", lambda _url: "")

    broker.report_until_it_answers("redis://10.0.0.1/0")

    assert capsys.readouterr().out == ""


def test_broker_keeps_idle_wakeups_low(server, run_dir):
    url = f"redis+socket://:{(run_dir / 'broker_password').read_text()}@{run_dir / broker.SOCKET}"
    with kombu.Connection(url) as link:
        assert link.default_channel.client.config_get("hz") == {"hz": str(broker.TIMER_HZ)}
