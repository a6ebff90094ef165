"""Whether machines reach each other's jobs is found out before somebody looks into one."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from aiplatform import env
from aiplatform.cli import doctor, server
from aiplatform.lib import inner_port
from tests.running import free_port
from workers.execution.exec import greeting
from workers.management.commands import exec_relay

pytestmark = pytest.mark.sockets("a port of this machine is the one in question")
HERE = "127.0.0.1"


def test_stand_in_answers_like_a_relay_and_is_gone_afterwards():
    port = free_port()

    with inner_port.stand_in(HERE, port):
        assert inner_port.answers(HERE, port)
        assert inner_port.answers(HERE, port)

    assert not inner_port.answers(HERE, port)
    assert greeting.line(challenge="x").startswith(inner_port.GREETING)


def test_stand_in_leaves_a_port_to_who_has_it():
    with socket.socket() as other:
        other.bind((HERE, 0))
        port = other.getsockname()[1]

        with inner_port.stand_in(HERE, port):
            assert not inner_port.answers(HERE, port, 0.2)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the doctor of a node finds when the server answers so."""

    def one(**answer):
        monkeypatch.setattr(env, "NODE_ADDRESS", HERE)
        monkeypatch.setattr(env, "EXEC_PORT", free_port())
        monkeypatch.setattr(env, "DATA_ROOT", tmp_path)
        monkeypatch.setattr(server, "see_answer", lambda file, content: None)
        seen = []

        def post(url, body):
            seen.append(inner_port.answers(HERE, env.EXEC_PORT))  # as the server would
            return answer

        monkeypatch.setattr(server, "post", post)
        found = [finding for finding in doctor._shared() if finding.what == "roads"]
        assert seen == [True]
        return found[0]

    return one


def test_doctor_of_a_node_says_what_a_firewall_must_let_through(asked, settings):
    settings.RUN_DIR = Path(settings.DATA_ROOT) / "run"

    closed = asked(reached=False)

    assert closed.level == doctor.WARN
    assert "terminals, SSH, ports and files of jobs there are not available" in closed.text
    assert "firewall" in closed.remedy
    assert asked(reached=True).level == asked().level == doctor.OK


@pytest.mark.django_db
def test_doctor_of_the_server_tries_all_machines_that_are_up(monkeypatch):
    from tests.factories import work

    port = free_port()
    monkeypatch.setattr(env, "NODE_ADDRESS", HERE)
    monkeypatch.setattr(env, "EXEC_PORT", port)
    work.node("far", address=HERE)
    work.node("lost", address=HERE, state="lost")

    shut = list(doctor._roads())
    with inner_port.stand_in(HERE, port):
        met = list(doctor._roads())

    assert [one.level for one in (*shut, *met)] == [doctor.WARN, doctor.OK]
    assert f"port {port} of far" in shut[0].text


def test_relay_whose_port_is_taken_says_so_and_listens_once_it_is_free(monkeypatch, caplog):
    monkeypatch.setattr(exec_relay, "AGAIN_S", 0.05)
    monkeypatch.setattr(env, "NODE_ADDRESS", HERE)

    async def play(other: socket.socket) -> bool:
        servers: list[asyncio.Server] = []
        listening = asyncio.create_task(exec_relay._listen(servers))
        await asyncio.sleep(0.2)  # pause: it may not listen meanwhile
        assert not servers
        other.close()
        await asyncio.wait_for(listening, 10)
        met = await asyncio.to_thread(inner_port.answers, HERE, env.EXEC_PORT)
        servers[0].close()
        return met

    with socket.socket() as other:
        other.bind((HERE, 0))
        other.listen()
        monkeypatch.setattr(env, "EXEC_PORT", other.getsockname()[1])
        assert asyncio.run(play(other))

    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == 1
    assert "set AIP_EXEC_PORT to a free port, the same on all nodes" in said[0]
