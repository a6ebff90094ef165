"""Egress proxy: what jobs with a network of their own reach of the world outside. HTTP, and HTTPS by CONNECT.

A name is looked up once and the address that was found is the one connected to. Addresses that are not public (this
machine, its neighbours, clouds' own services) are refused whatever their name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from workers.exec import socket_paths
from workers.exec.allowed_hosts import AllowedHosts
from workers.exec.relay import Streams, both_ways, close

log = logging.getLogger(__name__)

REQUEST_S, CONNECT_S = 30.0, 30.0
LONGEST = 65536  # bytes of a request's head
MOST = 512  # connections at a time
_PLAIN = b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n%s\n"
_MAIL = 25  # a job that sends mail is a job that was taken over
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Refused(Exception):
    """Not fetched: the status and a sentence for whoever asked."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


def is_public(address: str) -> bool:
    """Whether an address belongs to the internet at large, in whatever way it is wrapped."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast


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
            A host whose whole name is there may be an inner one: a mirror of packages in the house.
        resolve: finds the addresses of a host.
        public: which addresses may be reached.
    """

    def __init__(
        self, allowed: Sequence[str], resolve: Resolve = resolve, public: Callable[[str], bool] = is_public
    ) -> None:
        self.allowed = AllowedHosts(allowed)
        self.resolve, self.public = resolve, public
        self._room = asyncio.Semaphore(MOST)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of a job; none where too many are open, as each that waits holds a file open."""
        if self._room.locked():
            writer.transport.abort()
            return
        async with self._room:
            try:
                await self._carry(reader, writer)
            except Refused as exc:
                writer.write(
                    f"HTTP/1.1 {exc.status}\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n{exc}\n".encode()
                )
                await close(writer)
            except (OSError, ValueError, asyncio.IncompleteReadError):
                writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_S):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                raise Refused("400 Bad Request", "The head of this request is too long.") from None
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
        await both_ways((reader, writer), outer)

    async def _connect(self, host: str, port: int) -> Streams:
        name = host.lower().rstrip(".")
        if not self.allowed.allow(name):
            raise Refused("403 Forbidden", f"{host} is not among the hosts that jobs may reach.")
        if port == _MAIL:
            raise Refused("403 Forbidden", "Jobs send no mail.")
        try:
            async with asyncio.timeout(CONNECT_S):
                addresses = await self.resolve(name, port)
        except (OSError, UnicodeError) as exc:
            raise Refused("502 Bad Gateway", f"{host} was not found.") from exc
        if not addresses or not (self.allowed.has_name(name) or all(map(self.public, addresses))):
            raise Refused("403 Forbidden", f"{host} is an inner address, which jobs may not reach.")
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_S / len(addresses)):
                    return await asyncio.open_connection(address, port)
            except OSError:
                continue
        raise Refused("502 Bad Gateway", f"{host} does not answer.")


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
    """The fields of a head without those for the proxy; one request a connection, so that each is looked at."""
    kept = [
        line for line in fields.split(b"\r\n")
        if line and not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
    ]  # fmt: skip
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def begin(egress: Egress) -> asyncio.Server:
    """Begin to serve on this machine's egress socket. Whoever sees its folder may ask: jobs have users of their own."""
    path = socket_paths.egress()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o755)
    path.unlink(missing_ok=True)  # jobs look into the folder, so they find the new one
    server = await asyncio.start_unix_server(egress.serve, path, limit=LONGEST, backlog=MOST)
    path.chmod(0o666)
    return server


def end() -> None:
    """Take the socket away: jobs hear at once that there is no way out. Jobs that run on look into its folder."""
    socket_paths.egress().unlink(missing_ok=True)
