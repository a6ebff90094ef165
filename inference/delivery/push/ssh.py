"""A machine by SSH: files go there by SFTP, on from where they were cut, and get their name when they are whole.

The host must show the key that was pinned by the first test. What arrived is summed there by `sha256sum`, or read back
where the account may run no commands. https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import shlex
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import asyncssh
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.errors import Invalid
from inference.delivery.push import http_client
from inference.delivery.push.protocol import Destination, OnSent, Option, Parcel, PushFailed, Tested, failed

logging.getLogger("asyncssh").setLevel(logging.WARNING)  # else it tells who signs in where
BEGIN = "-----BEGIN"
CHUNK = 1 << 20
TEST_S = 45.0  # a user waits on a page
SUM_S = 900.0
SUM = re.compile(r"\\?([0-9a-f]{64})[ \n]")


class Ssh:
    code: ClassVar[str] = "ssh"
    label: ClassVar[Any] = _("SSH host")
    ports: ClassVar[Mapping[str, int]] = {"ssh": 22, "sftp": 22}
    address_help: ClassVar[Any] = _("ssh://gate.example.org:22/srv/models; below the home folder: ssh://HOST/~/models")
    options: ClassVar[tuple[Option, ...]] = (Option("username", _("Username"), required=True),)
    secret_label: ClassVar[Any] = _("Private key or password")
    secret_required: ClassVar[bool] = True
    secret_has_lines: ClassVar[bool] = True
    has_ca: ClassVar[bool] = False

    def check(self, destination: Destination) -> None:
        """Refuse a private key that cannot be read.

        Raises:
            Invalid.
        """
        if destination.secret.lstrip().startswith(BEGIN):
            try:
                asyncssh.import_private_key(destination.secret.strip() + "\n")
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError):
                message = _("Expected a private key without a passphrase. Create one for this purpose only.")
                raise Invalid(message, field="secret") from None

    def test(self, destination: Destination) -> Tested:
        """Sign in and create the folder where it is missing. The first test pins the key of the host."""
        return asyncio.run(_translate_errors(destination, _test(destination)))

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        return asyncio.run(_translate_errors(destination, _send(destination, parcel, on_sent)))


async def _translate_errors(destination: Destination, operation: Any) -> Any:
    """Await an operation and raise its errors as `PushFailed`."""
    host = http_client.host_of(destination.address)
    try:
        return await operation
    except PushFailed:
        raise
    except asyncssh.HostKeyNotVerifiable as exc:
        raise failed("host_key_changed", host=host) from exc
    except asyncssh.PermissionDenied as exc:
        raise failed("sign_in", host=host) from exc
    except (asyncssh.SFTPNoSpaceOnFilesystem, asyncssh.SFTPQuotaExceeded) as exc:
        raise failed("no_room", host=host) from exc
    except (asyncssh.SFTPPermissionDenied, asyncssh.SFTPWriteProtect) as exc:
        raise failed("not_writable", host=host) from exc
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath) as exc:
        raise failed("no_folder", host=host) from exc
    except (OSError, asyncssh.Error, TimeoutError) as exc:
        error = getattr(exc, "reason", "") or str(exc) or type(exc).__name__
        raise failed("silent", host=host, error=error, again=True) from exc


def _channel(destination: Destination) -> socket.socket:
    """Open a connection to the address that was checked."""
    target = http_client.reach(destination.address, destination, Ssh.ports)
    return socket.create_connection((target.address, target.port), http_client.CONNECT_S)


@asynccontextmanager
async def _connect(destination: Destination, host_key: str) -> AsyncIterator[Any]:
    """Connect to the host with this key and no other. Uses no agent and no settings of the platform's account."""
    is_key = destination.secret.lstrip().startswith(BEGIN)
    auth: dict[str, Any] = (
        {"client_keys": [asyncssh.import_private_key(destination.secret.strip() + "\n")], "preferred_auth": "publickey"}
        if is_key
        else {"password": destination.secret, "client_keys": None, "preferred_auth": "password,keyboard-interactive"}
    )
    channel = _channel(destination)
    channel.setblocking(False)
    known_hosts: Any = ([asyncssh.import_public_key(host_key)], [], [])
    async with asyncssh.connect(
        sock=channel, username=destination.option("username"), known_hosts=known_hosts, config=None, agent_path=None,
        login_timeout=http_client.CONNECT_S, keepalive_interval=15, keepalive_count_max=4, **auth,
    ) as connection:  # fmt: skip
        yield connection


async def _test(destination: Destination) -> Tested:
    async with asyncio.timeout(TEST_S):
        host_key = destination.host_key or await _fetch_host_key(destination)
        async with _connect(destination, host_key) as connection, connection.start_sftp_client() as sftp:
            await sftp.makedirs(_folder(destination), exist_ok=True)
    return Tested(host_key)


async def _fetch_host_key(destination: Destination) -> str:
    channel = _channel(destination)
    channel.setblocking(False)
    async with asyncio.timeout(http_client.CONNECT_S):
        key = await asyncssh.get_server_host_key(sock=channel, config=None)
    if key is None:
        raise failed("host_key_unknown", host=http_client.host_of(destination.address))
    return str(key.export_public_key().decode().strip())


def _folder(destination: Destination) -> str:
    """Return the folder that files go to; "." is the home folder."""
    path = unquote(urlsplit(destination.address).path)
    return path[3:].strip("/") or "." if path.startswith("/~/") or path == "/~" else path.rstrip("/") or "/"


async def _send(destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
    host, folder = http_client.host_of(destination.address), _folder(destination)
    if not destination.host_key:
        raise failed("host_key_unknown", host=host)
    final, part = f"{folder}/{parcel.name}", f"{folder}/.{parcel.name}.{parcel.sha256[:16]}.part"
    async with _connect(destination, destination.host_key) as connection, connection.start_sftp_client() as sftp:
        async with asyncio.timeout(http_client.PIECE_S):
            await sftp.makedirs(folder, exist_ok=True)
            begin = await _uploaded_size(sftp, part, parcel.size)
            if await _lacks_room(sftp, folder, parcel.size - begin):
                raise failed("no_room", host=host)
        try:
            await _write(sftp, part, parcel, begin, on_sent)
        except asyncssh.SFTPFailure as exc:  # all that OpenSSH says of a full disk
            if await _lacks_room(sftp, folder, CHUNK):
                raise failed("no_room", host=host) from exc
            raise
        async with asyncio.timeout(2 * SUM_S):
            arrived = await _sum(connection, sftp, part)
        async with asyncio.timeout(http_client.PIECE_S):
            if arrived != parcel.sha256:
                await sftp.remove(part)
                raise failed("checksum", host=host, again=True)
            await _rename(sftp, part, final)
            return f"{host}:{await sftp.realpath(final)}"


async def _rename(sftp: Any, part: str, final: str) -> None:
    """Give a file its name, whatever has it already."""
    try:
        await sftp.posix_rename(part, final)
    except asyncssh.SFTPOpUnsupported:
        if await sftp.exists(final):
            await sftp.remove(final)
        await sftp.rename(part, final)


async def _uploaded_size(sftp: Any, part: str, size: int) -> int:
    """Return how many bytes of the same file an earlier try left; the name contains the checksum."""
    try:
        uploaded = int((await sftp.stat(part)).size or 0)
    except asyncssh.SFTPNoSuchFile:
        return 0
    return uploaded if uploaded <= size else 0


async def _lacks_room(sftp: Any, folder: str, count: int) -> bool:
    try:
        disk = await sftp.statvfs(folder)
    except (asyncssh.SFTPError, NotImplementedError):  # the server does not tell
        return False
    return bool(disk.bavail * disk.frsize < count)


async def _write(sftp: Any, part: str, parcel: Parcel, begin: int, on_sent: OnSent) -> None:
    flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT | (0 if begin else asyncssh.FXF_TRUNC)
    at, waiting = begin, bytearray()
    on_sent(begin)

    async def flush(file: Any) -> None:
        nonlocal at
        async with asyncio.timeout(http_client.PIECE_S):
            await file.write(bytes(waiting), at)
        at += len(waiting)
        on_sent(len(waiting))
        waiting.clear()

    async with sftp.open(part, flags, encoding=None) as file:
        for piece in parcel.pieces(begin):
            waiting += piece
            if len(waiting) >= CHUNK:
                await flush(file)
        if waiting:
            await flush(file)


async def _sum(connection: Any, sftp: Any, path: str) -> str:
    """Return the SHA-256 of the remote file, in hex."""
    try:
        result = await connection.run(f"sha256sum -- {shlex.quote(path)}", check=False, timeout=SUM_S)
        match = SUM.match(str(result.stdout or ""))
        if result.exit_status == 0 and match:
            return match.group(1)
    except (asyncssh.ChannelOpenError, asyncssh.ProcessError, TimeoutError):
        pass  # it runs no commands: read it back
    digest = hashlib.sha256()
    async with sftp.open(path, "rb", encoding=None) as file:
        while piece := await file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()
