"""What clients that mean harm try at the SSH gateway: weak ciphers, borrowed keys, floods of channels."""

from __future__ import annotations

import asyncio
import shutil

import asyncssh
import pytest

from accounts.services.ssh_keys import KeyTaken
from tests.running import PATIENCE
from tests.workers import ssh_clients as clients
from tests.workers.ssh_clients import KEY, alices_key, connect, gateway, in_thread, inside, job
from workers.access.ssh.gateway import server
from workers.access.ssh.gateway.connection import MAX_CHANNELS
from workers.execution.exec import channels

__all__ = ["alices_key", "inside", "job"]  # fixtures
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sockets("the gateway and its clients")]
WEAK = {
    "kex": {"kex_algs": ["diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1"]},
    "cipher": {"encryption_algs": ["aes128-cbc", "3des-cbc", "aes128-ctr"]},
    "compression": {"compression_algs": ["zlib"]},
}  # fmt: skip


@pytest.mark.parametrize("weak", WEAK)
async def test_i08_weak_algorithms_are_not_spoken(weak, job, alices_key, inside):
    async with gateway() as (_hub, port):
        with pytest.raises(asyncssh.KeyExchangeFailed):
            await connect(port, job.pk, key=KEY, **WEAK[weak])
        async with connect(port, job.pk, key=KEY) as client:
            assert (await client.run("true", encoding=None)).exit_status == 7


def test_i08_clients_are_told_of_no_signature_by_sha1():
    """RSA keys sign by SHA-2 then, as OpenSSH does what it is told."""
    told = server.options_of(asyncssh.generate_private_key("ssh-ed25519")).signature_algs

    assert b"ssh-rsa" not in told
    assert {b"rsa-sha2-256", b"rsa-sha2-512", b"ssh-ed25519", b"sk-ssh-ed25519@openssh.com"} <= set(told)


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh is here")
@pytest.mark.parametrize(("algorithm", "enters"), [("rsa-sha2-256", True), ("rsa-sha2-512", True), ("ssh-rsa", False)])
async def test_i08_rsa_key_enters_by_sha2_alone_also_where_the_client_insists(
    algorithm, enters, job, alice, inside, tmp_path
):
    """By Debian's own ssh, which is told what it may use."""
    key = asyncssh.generate_private_key("ssh-rsa", key_size=3072)
    await in_thread(clients.add_key)(alice, key, "old")
    (tmp_path / "id_rsa").write_bytes(key.export_private_key())
    (tmp_path / "id_rsa").chmod(0o600)
    async with gateway() as (_hub, port):
        words = [
            "-F",
            "none",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ]
        words += [
            "-o",
            "IdentitiesOnly=yes",
            "-i",
            str(tmp_path / "id_rsa"),
            "-o",
            f"PubkeyAcceptedAlgorithms={algorithm}",
        ]
        started = await asyncio.create_subprocess_exec(
            "ssh", *words, "-p", str(port), f"job-{job.pk}@127.0.0.1", "true",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _out, error = await asyncio.wait_for(started.communicate(), 60)

    assert started.returncode == (7 if enters else 255), error
    assert (b"Permission denied" in error) is not enters


@pytest.mark.parametrize(("algorithm", "enters"), [(b"rsa-sha2-256", True), (b"ssh-rsa", False)])
async def test_i08_signature_by_sha1_proves_nothing_to_the_gateway(algorithm, enters, job, alice, inside):
    """A client that signs as it likes, whatever it was told the gateway takes."""
    key = asyncssh.generate_private_key("ssh-rsa", key_size=3072)
    await in_thread(clients.add_key)(alice, key, "old")
    [pair] = asyncssh.load_keypairs(key)
    pair.sig_algorithms = (algorithm,)
    pair.set_sig_algorithm(algorithm)
    async with gateway() as (_hub, port):
        try:
            async with connect(port, f"job-{job.pk}", key=pair, signature_algs="+ssh-rsa") as client:
                entered = (await client.run("true", encoding=None)).exit_status == 7
        except asyncssh.PermissionDenied:
            entered = False

    assert entered is enters


async def test_i06_key_belongs_to_one_account(job, bob, alices_key, inside):
    """A colleague who adds my public key would have me sign in as them, or be let in as me."""
    with pytest.raises(KeyTaken, match=r"This key is already in use. Create another one.") as refused:
        await in_thread(clients.add_key)(bob, KEY)

    assert "alice" not in str(refused.value)


async def test_i10_thousands_of_channels_at_once_take_no_more_than_their_places(job, alices_key, inside, monkeypatch):
    """Also while the job has not answered a single one."""
    most = waiting = 0
    begin, let_go = channels.open_with_reply, asyncio.Event()

    async def slow(*given, **more):
        nonlocal most, waiting
        waiting += 1
        most = max(most, waiting)
        await let_go.wait()
        waiting -= 1
        return await begin(*given, **more)

    monkeypatch.setattr(channels, "open_with_reply", slow)
    async with gateway() as (_hub, port), connect(port, job.pk, key=KEY) as client:
        asked = [asyncio.create_task(client.open_connection("localhost", 8888)) for _ in range(2000)]
        async with asyncio.timeout(60 * PATIENCE):
            while waiting < MAX_CHANNELS or sum(one.done() for one in asked) < 2000 - MAX_CHANNELS:
                await asyncio.sleep(0.05)
        done = [one for one in asked if one.done()]
        let_go.set()
        opened = await asyncio.gather(*asked, return_exceptions=True)
        for one in opened:
            if not isinstance(one, BaseException):
                one[1].close()
        await asyncio.sleep(0)
        again = await _until_open(client)

    assert len(done) == 2000 - MAX_CHANNELS
    assert most == MAX_CHANNELS
    assert sum(isinstance(one, asyncssh.ChannelOpenError) for one in opened) == 2000 - MAX_CHANNELS
    assert again == b"ping"


async def _until_open(client):
    """What comes back through one more channel, as soon as there is room again."""
    async with asyncio.timeout(clients.SOON_S):
        while True:
            try:
                reader, writer = await client.open_connection("localhost", 8888)
            except asyncssh.ChannelOpenError:
                await asyncio.sleep(0.05)
                continue
            writer.write(b"ping")
            return await reader.readexactly(4)
