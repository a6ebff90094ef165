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
from inference.delivery.push.protocol import Came, Option, Parcel, Place, PushFailed, Tested, failed

logging.getLogger("asyncssh").setLevel(logging.WARNING)  # else it tells who signs in where
BEGIN = "-----BEGIN"
CHUNK = 1 << 20
TEST_S = 45.0  # somebody waits on a page
SUM_S = 900.0
SUM = re.compile(r"\\?([0-9a-f]{64})[ \n]")


class Ssh:
    code: ClassVar[str] = "ssh"
    words: ClassVar[Any] = _("Machine by SSH")
    ports: ClassVar[Mapping[str, int]] = {"ssh": 22, "sftp": 22}
    address_help: ClassVar[Any] = _("ssh://gate.example.org:22/srv/models; below the home folder: ssh://HOST/~/models")
    options: ClassVar[tuple[Option, ...]] = (Option("username", _("Username"), required=True),)
    secret_words: ClassVar[Any] = _("Private key or password")
    secret_required: ClassVar[bool] = True
    secret_has_lines: ClassVar[bool] = True
    has_ca: ClassVar[bool] = False

    def check(self, place: Place) -> None:
        """Refuse a key that cannot be read.

        Raises:
            Invalid.
        """
        if place.secret.lstrip().startswith(BEGIN):
            try:
                asyncssh.import_private_key(place.secret.strip() + "\n")
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError):
                said = _("This is no private key without a passphrase. Make one for this purpose alone.")
                raise Invalid(said, field="secret") from None

    def test(self, place: Place) -> Tested:
        """Sign in, and see that there is a folder for files. The first test pins the key of the host."""
        return asyncio.run(_in_words(place, _test(place)))

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        return asyncio.run(_in_words(place, _send(place, parcel, came)))


async def _in_words(place: Place, doing: Any) -> Any:
    """Say what goes wrong, whoever raises it."""
    host = http_client.host_of(place.address)
    try:
        return await doing
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


def _channel(place: Place) -> socket.socket:
    """A connection to the address that was judged."""
    target = http_client.reach(place.address, place, Ssh.ports)
    return socket.create_connection((target.address, target.port), http_client.CONNECT_S)


@asynccontextmanager
async def _signed_in(place: Place, host_key: str) -> AsyncIterator[Any]:
    """A connection to the host with this key and to no other. No agent and no settings of the platform's account."""
    is_key = place.secret.lstrip().startswith(BEGIN)
    how: dict[str, Any] = (
        {"client_keys": [asyncssh.import_private_key(place.secret.strip() + "\n")], "preferred_auth": "publickey"}
        if is_key
        else {"password": place.secret, "client_keys": None, "preferred_auth": "password,keyboard-interactive"}
    )
    channel = _channel(place)
    channel.setblocking(False)
    known: Any = ([asyncssh.import_public_key(host_key)], [], [])
    async with asyncssh.connect(
        sock=channel, username=place.option("username"), known_hosts=known, config=None, agent_path=None,
        login_timeout=http_client.CONNECT_S, keepalive_interval=15, keepalive_count_max=4, **how,
    ) as connection:  # fmt: skip
        yield connection


async def _test(place: Place) -> Tested:
    async with asyncio.timeout(TEST_S):
        host_key = place.host_key or await _shown_key(place)
        async with _signed_in(place, host_key) as connection, connection.start_sftp_client() as sftp:
            await sftp.makedirs(_folder(place), exist_ok=True)
    return Tested(host_key)


async def _shown_key(place: Place) -> str:
    channel = _channel(place)
    channel.setblocking(False)
    async with asyncio.timeout(http_client.CONNECT_S):
        shown = await asyncssh.get_server_host_key(sock=channel, config=None)
    if shown is None:
        raise failed("host_key_unknown", host=http_client.host_of(place.address))
    return str(shown.export_public_key().decode().strip())


def _folder(place: Place) -> str:
    """The folder that files go to; "." is the home folder."""
    path = unquote(urlsplit(place.address).path)
    return path[3:].strip("/") or "." if path.startswith("/~/") or path == "/~" else path.rstrip("/") or "/"


async def _send(place: Place, parcel: Parcel, came: Came) -> str:
    host, folder = http_client.host_of(place.address), _folder(place)
    if not place.host_key:
        raise failed("host_key_unknown", host=host)
    final, part = f"{folder}/{parcel.name}", f"{folder}/.{parcel.name}.{parcel.sha256[:16]}.part"
    async with _signed_in(place, place.host_key) as connection, connection.start_sftp_client() as sftp:
        async with asyncio.timeout(http_client.PIECE_S):
            await sftp.makedirs(folder, exist_ok=True)
            begin = await _there(sftp, part, parcel.size)
            if await _lacks_room(sftp, folder, parcel.size - begin):
                raise failed("no_room", host=host)
        try:
            await _write(sftp, part, parcel, begin, came)
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


async def _there(sftp: Any, part: str, size: int) -> int:
    """How many bytes of the same file an earlier try left; its name holds the file's sum."""
    try:
        found = int((await sftp.stat(part)).size or 0)
    except asyncssh.SFTPNoSuchFile:
        return 0
    return found if found <= size else 0


async def _lacks_room(sftp: Any, folder: str, count: int) -> bool:
    try:
        disk = await sftp.statvfs(folder)
    except (asyncssh.SFTPError, NotImplementedError):  # the server does not tell
        return False
    return bool(disk.bavail * disk.frsize < count)


async def _write(sftp: Any, part: str, parcel: Parcel, begin: int, came: Came) -> None:
    flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT | (0 if begin else asyncssh.FXF_TRUNC)
    at, waiting = begin, bytearray()
    came(begin)

    async def flush(file: Any) -> None:
        nonlocal at
        async with asyncio.timeout(http_client.PIECE_S):
            await file.write(bytes(waiting), at)
        at += len(waiting)
        came(len(waiting))
        waiting.clear()

    async with sftp.open(part, flags, encoding=None) as file:
        for piece in parcel.pieces(begin):
            waiting += piece
            if len(waiting) >= CHUNK:
                await flush(file)
        if waiting:
            await flush(file)


async def _sum(connection: Any, sftp: Any, path: str) -> str:
    """SHA-256 of what lies there, in hex."""
    try:
        told = await connection.run(f"sha256sum -- {shlex.quote(path)}", check=False, timeout=SUM_S)
        match = SUM.match(str(told.stdout or ""))
        if told.exit_status == 0 and match:
            return match.group(1)
    except (asyncssh.ChannelOpenError, asyncssh.ProcessError, TimeoutError):
        pass  # it runs no commands: read it back
    found = hashlib.sha256()
    async with sftp.open(path, "rb", encoding=None) as file:
        while piece := await file.read(CHUNK):
            found.update(piece)
    return found.hexdigest()
