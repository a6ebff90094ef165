"""Who is let in by the SSH gateway, by what, for how long, and what is written down of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncssh
import pytest
from django.utils.timezone import now

from accounts.models import AuditEntry, User
from accounts.services import ssh_keys
from aiplatform.lib.errors import NotAllowed
from tests.cases import case_table
from tests.factories import work
from tests.workers import ssh_clients as clients
from tests.workers.ssh_clients import KEY, OTHER, SOON_S, alices_key, connect, gateway, in_thread, inside, job, until
from workers.access.ssh import access, activity, passwords, sessions
from workers.access.ssh.gateway import connection, hub, server
from workers.access.ssh.gateway.session import Session
from workers.access.ssh.models import SshPassword, SshSession
from workers.access.ssh.passwords import JobOver
from workers.core.models import Job
from workers.execution.exec import channels

__all__ = ["alices_key", "inside", "job"]  # fixtures
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("the gateway and its clients")]


async def refused(port, name, **proof):
    with pytest.raises(asyncssh.PermissionDenied):
        await connect(port, name, **proof)


def verbs():
    return list(AuditEntry.objects.filter(verb__startswith="ssh_").order_by("pk").values_list("verb", "actor"))


@case_table(("name", "number"), [
    ("12", 12), ("job-12", 12), ("job-12.1", 12), ("12.1", 12), ("12.", None), ("12.1000", None),
    ("12.1.2", None), ("0", None), ("012", None), ("job-", None), ("12 ", None), ("12\n", None),
    ("alice", None), ("job-1" + "0" * 30, None), ("١٢", None), ("", None),
])  # fmt: skip
def test_job_number_takes_plain_numbers_only(name, number):
    assert access.job_number(name) == number


@pytest.mark.parametrize(("name", "rank"), [("12", 0), ("job-12", 0), ("job-12.1", 1), ("12.15", 15), ("jump", 0)])
def test_rank_number_is_that_of_the_machine_that_is_named(name, rank):
    assert access.rank_number(name) == rank


@pytest.mark.django_db
def test_wrong_passwords_for_all_machines_of_a_job_are_counted_together(db):
    from accounts.sign_in import lockout

    for rank in range(20):
        access.by_password(f"job-12.{rank}", "wrong", address="10.9.8.7")

    assert lockout.is_paused_at("10.9.8.7", "job-12")


async def test_own_key_enters_the_own_job_and_is_written_down(job, alices_key, inside, monkeypatch):
    async with gateway(monkeypatch) as (_hub, port):
        async with connect(port, f"job-{job.pk}", key=KEY) as client:
            done = await client.run("true", encoding=None)
            row = await until(lambda: SshSession.objects.exclude(heard_at=None).first())
            heard = await in_thread(activity.last_heard)(job)
        over = await until(lambda: SshSession.objects.exclude(ended_at=None).first())

    assert done.exit_status == 7
    assert inside.requests[0]["act"] == "session"
    assert inside.requests[0]["command"] == "true"
    assert (row.way, row.key_name, row.address, row.user_id) == ("key", "laptop", "127.0.0.1", job.owner_id)
    assert row.client.startswith("AsyncSSH")
    assert heard == row.heard_at
    assert over.end == "left"
    assert await in_thread(verbs)() == [("ssh_entered", "alice")]


async def test_i06_other_peoples_keys_and_unknown_ones_are_refused(job, bob, olga, alices_key, inside):
    await in_thread(clients.add_key)(olga, OTHER)
    async with gateway() as (_hub, port):
        await refused(port, job.pk, key=OTHER)  # an operator's
        await refused(port, job.pk, key=asyncssh.generate_private_key("ssh-ed25519"))
        await refused(port, job.pk + 1, key=KEY)  # no such job
        await refused(port, "root", key=KEY)
        await refused(port, "bob", key=KEY)  # somebody else's name to jump by

        entries = await until(lambda: len(rows := list(AuditEntry.objects.filter(verb="ssh_refused"))) == 5 and rows)

    assert {entry.actor for entry in entries} == {""}  # a public key proves nobody
    assert sorted(str(entry.facts.get("holders")) for entry in entries) == ["None", *["['alice']"] * 3, "['olga']"]
    assert inside.requests == []
    assert not await in_thread(SshSession.objects.exists)()


@pytest.mark.parametrize("withdrawn", ["key", "account", "password", "role", "owner"])
async def test_i06_withdrawn_right_refuses_the_next_sign_in_and_cuts_open_sessions(
    withdrawn, job, alice, bob, alices_key, inside, monkeypatch
):
    def withdraw():
        if withdrawn == "key":
            ssh_keys.remove(key=alices_key, by=alice)
        elif withdrawn == "account":
            User.objects.filter(pk=alice.pk).update(is_active=False)
        elif withdrawn == "password":
            User.objects.filter(pk=alice.pk).update(must_change_password=True)
        elif withdrawn == "role":
            alice.roles.clear()
        else:
            Job.objects.filter(pk=job.pk).update(owner=bob)

    inside.lasting = True
    async with gateway(monkeypatch) as (_hub, port):
        client = await connect(port, job.pk, key=KEY)
        running = await client.create_process("sleep", encoding=None)
        await until(SshSession.objects.open().exists)

        await in_thread(withdraw)()

        async with asyncio.timeout(SOON_S):
            await client.wait_closed()
        await refused(port, job.pk, key=KEY)
        row = await until(lambda: SshSession.objects.exclude(ended_at=None).first())
    assert row.end == "withdrawn"
    assert running.exit_status is None


async def test_session_ends_with_its_job_and_on_request(job, alice, alices_key, inside, monkeypatch):
    inside.lasting = True
    async with gateway(monkeypatch) as (_hub, port):
        first = await connect(port, job.pk, key=KEY)
        row = await until(SshSession.objects.open().first)
        await in_thread(sessions.request_end)(row, by=alice)
        async with asyncio.timeout(SOON_S):
            await first.wait_closed()
        second = await connect(port, job.pk, key=KEY)
        await until(SshSession.objects.open().first)
        await in_thread(Job.objects.filter(pk=job.pk).update)(state="succeeded")
        async with asyncio.timeout(SOON_S):
            await second.wait_closed()
        await until(lambda: not SshSession.objects.filter(ended_at=None).exists())

    ends = await in_thread(lambda: list(SshSession.objects.order_by("pk").values_list("end", flat=True)))()
    assert ends == ["requested", "job_ended"]
    with pytest.raises(sessions.SessionOver):
        await in_thread(lambda: sessions.request_end(SshSession.objects.last(), by=alice))()


async def test_i07_one_time_password_opens_its_job_once(job, alice, cluster, inside):
    other = await in_thread(work.job)(alice, cluster, state="running")
    _row, secret = await in_thread(passwords.make)(job, by=alice)
    async with gateway() as (_hub, port):
        await refused(port, other.pk, password=secret)
        async with connect(port, job.pk, password=secret) as client:
            done = await client.run("true", encoding=None)
        await refused(port, job.pk, password=secret)

    assert done.exit_status == 7
    assert secret not in str(await in_thread(lambda: list(AuditEntry.objects.values()))())
    assert secret not in str(await in_thread(lambda: list(SshPassword.objects.values()))())


async def test_i07_two_who_come_with_one_password_at_once_are_one_guest(job, alice, inside):
    _row, secret = await in_thread(passwords.make)(job, by=alice)
    async with gateway() as (_hub, port):
        tries = [connect(port, job.pk, password=secret) for _i in range(3)]
        came = await asyncio.gather(*tries, return_exceptions=True)
        for one in came:
            if not isinstance(one, Exception):
                one.close()

    assert sorted(isinstance(one, Exception) for one in came) == [False, True, True]


def test_password_of_another_time_person_or_end_opens_nothing(job, alice, olga, settings):
    row, secret = passwords.make(job, by=alice)
    SshPassword.objects.filter(pk=row.pk).update(expires_at=now())
    _second, of_disabled = passwords.make(job, by=alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert access.by_password(str(job.pk), secret, address="10.0.0.1") is None
    assert access.by_password(str(job.pk), of_disabled, address="10.0.0.1") is None
    with pytest.raises(NotAllowed):
        passwords.make(job, by=olga)
    Job.objects.filter(pk=job.pk).update(state="succeeded")
    with pytest.raises(JobOver):
        passwords.make(Job.objects.get(pk=job.pk), by=alice)


def test_a05_guessed_passwords_make_the_address_wait_but_no_key(job, alice, alices_key, settings):
    _row, secret = passwords.make(job, by=alice)
    for _i in range(settings.AXES_FAILURE_LIMIT):
        assert access.by_password(str(job.pk), "abcd-efgh-jkmn-pqrs", address="10.0.0.1") is None

    assert access.by_password(str(job.pk), secret, address="10.0.0.1") is None  # also the right one
    assert SshPassword.objects.live().exists()  # which is not used up by it
    assert access.by_key(str(job.pk), alices_key.fingerprint) is not None
    assert access.by_password(str(job.pk), secret, address="10.0.0.2") is not None
    assert AuditEntry.objects.filter(verb="locked_out", address="").exists()


async def test_i08_many_tries_of_one_connection_end_it(job, inside, monkeypatch):
    monkeypatch.setattr(connection, "MAX_ATTEMPTS", 3)
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _i in range(6)]
    async with gateway() as (_hub, port):
        with pytest.raises((asyncssh.DisconnectError, ConnectionError)):
            await connect(port, job.pk, client_keys=keys)
        entries = await until(lambda: list(AuditEntry.objects.filter(verb="ssh_refused")))

    assert [len(entry.facts["fingerprint"]) for entry in entries] == [3]


async def test_i08_strangers_that_say_nothing_fill_no_more_than_their_places(job, alices_key, inside, monkeypatch):
    monkeypatch.setattr(hub, "MAX_UNAUTHENTICATED_PER_ADDRESS", 3)
    async with gateway() as (running, port):
        mute = [await asyncio.open_connection("127.0.0.1", port) for _i in range(3)]
        for reader, _writer in mute:
            assert (await reader.readline()).startswith(b"SSH-2.0-aiplatform")
        with pytest.raises((asyncssh.DisconnectError, ConnectionError)):
            await connect(port, job.pk, key=KEY)
        for _reader, writer in mute:
            writer.close()
        async with asyncio.timeout(SOON_S):
            while running.strangers:
                await asyncio.sleep(0.02)
        async with connect(port, job.pk, key=KEY):
            assert not running.strangers
    assert running.connections == set()


async def test_client_that_answers_no_more_is_let_go(job, alices_key, inside, monkeypatch):
    monkeypatch.setattr(server, "SIGN_OF_LIFE_S", 0.05)
    async with gateway(monkeypatch) as (running, port):
        client = await connect(port, job.pk, key=KEY)
        await until(SshSession.objects.open().exists)
        client._transport.pause_reading()  # as a sleeping laptop does
        row = await until(lambda: SshSession.objects.exclude(ended_at=None).first())
        client.abort()

    assert row.end == "left"
    assert not running.open


async def test_most_sessions_of_a_job_are_bounded(job, alices_key, inside, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS_PER_JOB", 1)
    async with gateway(monkeypatch) as (_hub, port):
        async with connect(port, job.pk, key=KEY):
            await until(SshSession.objects.open().exists)
            second = await connect(port, job.pk, key=KEY)
            async with asyncio.timeout(SOON_S):
                await second.wait_closed()
        await until(lambda: not SshSession.objects.open().exists())
        async with connect(port, job.pk, key=KEY):
            await until(SshSession.objects.open().exists)

    facts = await in_thread(lambda: AuditEntry.objects.get(verb="ssh_refused").facts)()
    assert facts["code"] == "too_many_sessions"


async def test_i06_forwarding_goes_to_the_jobs_own_ports_alone(job, alices_key, inside):
    async with gateway() as (_hub, port), connect(port, job.pk, key=KEY) as client:
        for host in ("169.254.169.254", "example.org", "127.0.0.2", "10.0.0.1", "::ffff:127.0.0.1"):
            with pytest.raises(asyncssh.ChannelOpenError):
                await client.open_connection(host, 80)
        reader, writer = await client.open_connection("localhost", 8888)
        writer.write(b"ping")
        echoed = await reader.readexactly(4)
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_port("10.0.0.1", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_path("/tmp/there", "/tmp/here")
        writer.close()

    assert echoed == b"ping"
    assert [(one["act"], one["port"]) for one in inside.requests] == [("port", 8888)]


async def test_jump_by_the_own_name_is_judged_again_at_the_job(job, alice, bob, cluster, alices_key, inside):
    foreign = await in_thread(work.job)(bob, cluster, state="running")
    async with gateway() as (_hub, port), connect(port, "alice", key=KEY) as host:
        shell = await host.run("", encoding=None)
        async with connect(22, job.pk, key=KEY, tunnel=host) as client:
            done = await client.run("true", encoding=None)
        await refused(22, foreign.pk, key=KEY, tunnel=host)
        with pytest.raises(asyncssh.ChannelOpenError):
            await host.open_unix_connection("/run/any")

    assert done.exit_status == 7
    assert shell.exit_status == 255
    assert b"ssh job-12@" in shell.stderr
    assert await until(lambda: (rows := verbs()) and len(rows) == 3 and rows) == [
        ("ssh_jumped", "alice"),
        ("ssh_entered", "alice"),
        ("ssh_refused", ""),
    ]
    addresses = await in_thread(lambda: set(AuditEntry.objects.filter(verb="ssh_entered").values_list("address")))()
    assert addresses == {("127.0.0.1",)}


async def test_refusals_of_the_job_are_said_in_the_persons_language(job, alice, alices_key, inside):
    await in_thread(User.objects.filter(pk=alice.pk).update)(language="zh-hans")
    inside.refuses = "paused"
    async with gateway() as (_hub, port), connect(port, job.pk, key=KEY) as client:
        done = await client.run("true", encoding=None)

    assert done.exit_status == 255
    assert "暂停" in done.stderr.decode()


async def test_sessions_of_a_killed_gateway_are_closed_by_the_next(job, alice, inside, monkeypatch):
    left = {"job": job, "user": alice, "way": "key", "gateway": "gone"}
    await in_thread(SshSession.objects.create)(**left)
    async with gateway():
        pass
    silent = await in_thread(SshSession.objects.create)(**left, seen_at=now() - timedelta(minutes=5))
    fresh = await in_thread(SshSession.objects.create)(**left)
    await in_thread(sessions.sweep)("another")

    rows = await in_thread(lambda: list(SshSession.objects.order_by("pk").values_list("end", flat=True)))()
    assert rows == ["gateway_lost", "gateway_lost", ""]
    assert await in_thread(lambda: list(SshSession.objects.open()))() == [fresh]
    assert silent.pk != fresh.pk


async def test_gateway_that_stops_leaves_no_session_open(job, alices_key, inside):
    async with gateway():
        pass
    async with gateway() as (running, port):
        await connect(port, job.pk, key=KEY)
        await until(SshSession.objects.open().exists)

    assert running.open == {}
    assert await in_thread(lambda: SshSession.objects.get().end)() == "gateway_lost"


async def test_host_key_is_made_once_and_private(inside, settings):
    from workers.access.ssh import host_key

    async with gateway():
        before = host_key.path().read_bytes(), host_key.fingerprint()
    host_key.path().chmod(0o644)
    async with gateway() as (_hub, port):
        seen = await asyncssh.get_server_host_key("127.0.0.1", port)

    assert (host_key.path().read_bytes(), host_key.fingerprint()) == before
    assert host_key.path().stat().st_mode & 0o777 == 0o600
    assert seen.get_fingerprint() == before[1]


async def test_most_connections_of_a_person_are_bounded_jumps_among_them(alices_key, inside, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SESSIONS_PER_USER", 1)
    async with gateway(monkeypatch) as (running, port), connect(port, "alice", key=KEY) as first:
        second = await connect(port, "alice", key=KEY)
        async with asyncio.timeout(SOON_S):
            await second.wait_closed()
        assert not first.is_closed()
        assert len(running.connections) == 1


async def test_input_before_the_job_answers_waits_at_the_client(job, alices_key, inside, monkeypatch):
    answers, begin, held = asyncio.Event(), inside.begin, []

    async def slowly(way, request, patience_s=10.0):
        await answers.wait()
        return await begin(way, request)

    def started(session, gateway):
        plain(session, gateway)
        held.append(session)

    plain = Session.__init__
    monkeypatch.setattr(Session, "__init__", started)
    monkeypatch.setattr(channels, "open_with_reply", slowly)
    async with gateway() as (_hub, port), connect(port, job.pk, key=KEY) as client:
        process = await client.create_process("true", encoding=None)
        process.stdin.write(b"x" * (16 << 20))
        for _turn in range(200):
            await asyncio.sleep(0.005)
        early = sum(map(len, held[0].early))
        answers.set()
        async with asyncio.timeout(SOON_S):
            await process.wait_closed()

    assert early < 4 << 20
    assert process.exit_status == 7
