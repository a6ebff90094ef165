"""Egress proxy: what jobs with a network of their own reach of the world outside. HTTP, and HTTPS by CONNECT.

A name is looked up once and the address that was found is the one connected to. Addresses that are not public (this
machine, its neighbours, clouds' own services) are refused whatever their name, and so are those of the platform's own
machines where they are public. Each job has a share of the connections, and no job has the share of another.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiplatform.lib import addresses
from workers.execution.exec import socket_paths
from workers.execution.exec.allowed_hosts import AllowedHosts
from workers.execution.exec.closed_addresses import NotKnown
from workers.execution.exec.relay import Streams, close, copy_both_ways

log = logging.getLogger(__name__)

REQUEST_S, CONNECT_S = 30.0, 30.0
MAX_BYTES = 65536  # bytes of a request's head
MAX_CONNECTIONS, MAX_CONNECTIONS_PER_JOB = 4096, 256  # connections at a time: of all jobs, of one
MAX_REFUSED = 64  # of those beyond, who are told why; each holds a file open meanwhile
IDLE_S = 3600.0  # without a byte either way
_MAIL = 25  # a job that sends mail is a job that was taken over
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Closed = Callable[[str, int], Awaitable[bool]]


class Refused(Exception):
    """A request that is not forwarded: the HTTP status and a sentence for the client."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


def is_public(address: str) -> bool:
    """Whether an address belongs to the internet at large, in whatever way it is wrapped."""
    return addresses.is_public(ipaddress.ip_address(address.partition("%")[0]))


async def _none_closed(_address: str, _port: int) -> bool:
    return False


def job_of(writer: asyncio.StreamWriter) -> str:
    """What tells jobs apart, by the kernel's word on who connected: their networks, else their users.

    No job can make itself another network; users it may have many where it is root inside.
    """
    asking = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _gid = struct.unpack("3i", asking)
    try:
        return f"network {Path(f'/proc/{pid}/ns/net').stat().st_ino}"
    except OSError:  # it is gone, or the platform may not look at it
        return f"user {uid}"


def take_files() -> None:
    """Let this process open as many files as it may, up to what the proxy takes at most."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MAX_CONNECTIONS
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(hard, wanted), hard))


def most() -> int:
    """How many connections there may be at a time: each takes two files, and others need as many."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MAX_CONNECTIONS, files // 4))


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host.

    Raises:
        OSError: it has none.
    """
    loop = asyncio.get_running_loop()
    return [str(row[4][0]) for row in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Egress:
    """The proxy of one machine.

    Args:
        allowed: host names, each perhaps with a *: ["pypi.org", "*.pythonhosted.org"]; ["*"] all, ["none"] no host.
            A host whose whole name is there may be an inner one: a mirror of packages in the house. See `AllowedHosts`.
        resolve: finds the addresses of a host.
        public: which addresses may be reached.
        closed: which of the public ones may not, by address and port.
    """

    def __init__(
        self,
        allowed: Sequence[str],
        resolve: Resolve = resolve,
        public: Callable[[str], bool] = is_public,
        closed: Closed = _none_closed,
    ) -> None:
        self.allowed = AllowedHosts(allowed)
        self.resolve, self.public, self.closed = resolve, public, closed
        self.most = most()
        self._open: Counter[str] = Counter()  # by job
        self._refused = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of a job; where too many are open it hears that."""
        job = job_of(writer)
        why = self._why_full(job)
        if why and self._refused >= MAX_REFUSED:
            writer.transport.abort()
            return
        self._count(job, 1, refused=bool(why))
        try:
            await self._answer(reader, writer, why)
        finally:
            self._count(job, -1, refused=bool(why))

    def _why_full(self, job: str) -> str:
        if self._open[job] >= MAX_CONNECTIONS_PER_JOB:
            return f"This job has {MAX_CONNECTIONS_PER_JOB} connections open, which is the most. Close some."
        if self._open.total() >= self.most:
            return f"Jobs of this machine have {self.most} connections open, which is the most. Try again in a moment."
        return ""

    def _count(self, job: str, change: int, *, refused: bool) -> None:
        if refused:
            self._refused += change
            return
        self._open[job] += change
        if not self._open[job]:
            del self._open[job]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, why_full: str) -> None:
        try:
            head = await _head(reader)
            if why_full:
                raise Refused("503 Service Unavailable", why_full)
            await self._carry(head, reader, writer)
        except Refused as exc:
            writer.write(
                f"HTTP/1.1 {exc.status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n{exc}\n".encode()
            )
            await close(writer)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            writer.transport.abort()

    async def _carry(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, _end, fields = head.partition(b"\r\n")
        try:
            method, target, version = first.decode("ascii").split(" ")
            host, port, path = _where(method, target)
        except ValueError:
            raise Refused(
                "400 Bad Request", "This is a proxy: ask with CONNECT, or with a whole http:// address."
            ) from None
        outer = await self._connect(host, port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            outer[1].write(f"{method} {path} {version}\r\n".encode() + _passed_on(fields))
        await copy_both_ways((reader, writer), outer, IDLE_S)

    async def _connect(self, host: str, port: int) -> Streams:
        name = host.lower().rstrip(".")
        if not self.allowed.allow(name, port):
            raise Refused("403 Forbidden", f"{host} is not among the hosts that jobs may reach.")
        if port == _MAIL:
            raise Refused("403 Forbidden", "Jobs send no mail.")
        try:
            async with asyncio.timeout(CONNECT_S):
                addresses = await self.resolve(name, port)
        except (OSError, UnicodeError) as exc:
            raise Refused("502 Bad Gateway", f"{host} was not found.") from exc
        if not self.allowed.has_name(name, port):
            await self._check(host, port, addresses)
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_S / len(addresses)):
                    return await asyncio.open_connection(address, port)
            except OSError:
                continue
        raise Refused("502 Bad Gateway", f"{host} does not answer.")

    async def _check(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """See that all addresses of a host may be reached.

        Raises:
            Refused: one may not.
        """
        if not addresses or not all(map(self.public, addresses)):
            raise Refused("403 Forbidden", f"{host} is an inner address, which jobs may not reach.")
        try:
            closed = [address for address in addresses if await self.closed(address, port)]
        except NotKnown:
            raise Refused(
                "503 Service Unavailable", "The platform's database does not answer. Try again in a moment."
            ) from None
        if closed:
            raise Refused("403 Forbidden", f"{host} is a machine or network that is closed to jobs.")


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The head of a request.

    Raises:
        Refused: it is too long.
        OSError, asyncio.IncompleteReadError: none came.
    """
    async with asyncio.timeout(REQUEST_S):
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise Refused("400 Bad Request", "The head of this request is too long.") from None


def _where(method: str, target: str) -> tuple[str, int, str]:
    """Host, port and path that a request names.

    Raises:
        ValueError: none.
    """
    parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
    port = parts.port or (0 if method == "CONNECT" else 80)
    if not parts.hostname or not port or (method != "CONNECT" and parts.scheme != "http"):
        raise ValueError(target)
    return parts.hostname, port, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _passed_on(fields: bytes) -> bytes:
    """Header fields of a request without those for the proxy; one request per connection, so that each is checked."""
    lines = [
        line for line in fields.split(b"\r\n")
        if line and not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
    ]  # fmt: skip
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


async def start(egress: Egress) -> Door:
    """Serve on this node's egress socket. Every process that can see its folder may connect: jobs have own users.

    Raises:
        OSError: the folder is somebody else's.
    """
    path = socket_paths.egress_folder() / socket_paths.egress().name
    path.unlink(missing_ok=True)  # jobs look into the folder, so they find the new one
    server = await asyncio.start_unix_server(egress.serve, path, limit=MAX_BYTES, backlog=MAX_CONNECTIONS)
    path.chmod(0o666)
    return Door(server, path, path.stat().st_ino)


@dataclass(frozen=True)
class Door:
    """An egress socket that is served."""

    server: asyncio.Server
    path: Path
    inode: int

    def close(self) -> None:
        """Take the socket away: jobs hear at once that there is no way out. That of a successor stays."""
        self.server.close()
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()
