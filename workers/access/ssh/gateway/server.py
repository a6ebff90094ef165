"""The SSH gateway's process: listens, looks after its sessions, and leaves none behind."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncssh

from workers.access.ssh import host_key, sessions
from workers.access.ssh.gateway.connection import Gateway
from workers.access.ssh.gateway.hub import Hub, on_database

log = logging.getLogger(__name__)

CIPHERS = ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com")
NO_SHA1_EXCHANGE, NO_SHA1_SIGNATURE = "-*sha1", "-ssh-rsa"  # taken from what asyncssh offers; RSA keys sign by SHA-2
AGAIN_S, SIGN_OF_LIFE_S = 2.0, 15


def keep_host_key() -> asyncssh.SSHKey:
    """The gateway's own key, made where there is none."""
    if not host_key.path().exists():
        made = asyncssh.generate_private_key("ssh-ed25519", comment="aiplatform")
        host_key.store(made.export_private_key(), made.export_public_key())
    host_key.path().chmod(0o600)
    key = asyncssh.read_private_key(host_key.path())
    if host_key.public_line() != " ".join(key.export_public_key().decode().split()[:2]):
        host_key.store(key.export_private_key(), key.export_public_key())
    return key


def options_of(key: asyncssh.SSHKey) -> asyncssh.SSHServerConnectionOptions:
    """What all connections share: no agent, no X11, no copying by asyncssh itself; 60 s of silence end it."""
    return asyncssh.SSHServerConnectionOptions(
        server_host_keys=[key], encoding=None, line_editor=False, allow_scp=False, agent_forwarding=False,
        x11_forwarding=False, gss_host=None, host_based_auth=False, keepalive_interval=SIGN_OF_LIFE_S,
        keepalive_count_max=4, login_timeout=30, compression_algs=None, server_version="aiplatform",
        window=2 << 20, encryption_algs=CIPHERS, kex_algs=NO_SHA1_EXCHANGE,
        signature_algs=NO_SHA1_SIGNATURE,
    )  # fmt: skip


@asynccontextmanager
async def listening(host: str, port: int) -> AsyncIterator[tuple[Hub, int]]:
    """Accept connections; yields the hub and the port. Everything is ended and written down afterwards."""
    hub = Hub()
    options = options_of(await asyncio.to_thread(keep_host_key))
    acceptor = await asyncssh.listen(host, port, options=options, server_factory=lambda: Gateway(hub, options))
    await on_database(sessions.sweep, hub.name, alone=True)  # who held this port before is gone
    watch = asyncio.create_task(hub.watch())
    try:
        yield hub, acceptor.get_port()
    finally:
        acceptor.close()
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await hub.close()
        await acceptor.wait_closed()


async def serve(host: str, port: int) -> None:
    """Run until TERM or INT; while another process has the port, wait for it."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    is_logged = False
    while not stopped.is_set():
        try:
            async with listening(host, port):
                await stopped.wait()
        except OSError as exc:
            if not is_logged:
                log.warning("port=%s SSH cannot listen (%s). Free it, or set AIP_SSH_PORT.", port, exc.strerror or exc)
                is_logged = True
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), AGAIN_S)
