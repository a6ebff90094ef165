"""The one way to a stream: an address that was judged, and nothing else.

A name is resolved once for each connection, every answer is judged, and the connection goes to the very address that
was judged. FFmpeg itself reaches only a door on the loopback, through which bytes go to that address: what the stream
says of other servers leads nowhere.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import select
import socket
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from aiplatform.lib.addresses import is_allowed, is_public

PORTS = {"rtsp": 554, "rtsps": 322, "http": 80, "https": 443}
CONNECT_S, READ_S = 5.0, 10.0
BLOCK = 1 << 16
REDIRECT = b"RTSP/1.0 3"
OK = 200


class Refused(Exception):
    """The source is not opened; the message is for people. `final`: nor will it be a moment later."""

    def __init__(self, message: str, *, final: bool = True) -> None:
        super().__init__(message)
        self.final = final


@dataclass(frozen=True)
class Route:
    """Where a stream is, judged: connect to `address`, and say `host`."""

    scheme: str
    host: str
    port: int
    path: str
    user: str
    password: str
    address: str

    @property
    def is_secret(self) -> bool:
        """Whether what goes there is encrypted."""
        return self.scheme in ("rtsps", "https")


def resolve(url: str, allowed: Sequence[str]) -> Route:
    """Return the permitted route of a connection to the stream.

    Raises:
        Refused: no address of a stream, or one inside the network that no operator allowed.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip(".").lower(), parts.port
    except ValueError:
        raise Refused("This is no address of a stream.") from None
    if parts.scheme not in PORTS or not host or "%" in host or any(ord(char) <= 32 for char in url):
        raise Refused(f"The address of a stream begins with one of: {', '.join(f'{name}://' for name in PORTS)}")
    port = port or PORTS[parts.scheme]
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise Refused(f"{host} is not found.", final=False) from None
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries]
    if any(not is_public(address) and not is_allowed(host, address, allowed) for address in addresses):
        raise Refused(f"{host} lies inside this network. An operator can allow it with AIP_STREAM_ALLOWED.")
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Route(parts.scheme, host, port, path, user, password, str(addresses[0]))


def connect(route: Route) -> socket.socket:
    """Connect along a permitted route.

    Raises:
        Refused: the address does not answer.
    """
    try:
        plain = socket.create_connection((route.address, route.port), CONNECT_S)
        plain.settimeout(READ_S)
        if not route.is_secret:
            return plain
        return ssl.create_default_context().wrap_socket(plain, server_hostname=route.host)
    except OSError as exc:
        raise Refused(f"{route.host} does not answer: {exc.strerror or type(exc).__name__}.", final=False) from None


class Door:
    """A port on the loopback that leads to one connection, for one caller."""

    def __init__(self, route: Route) -> None:
        self.far = connect(route)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._pass, daemon=True).start()

    def _pass(self) -> None:
        try:
            near, _ = self.listener.accept()
            self.listener.close()
            with near, self.far:
                self._both(near)
        except OSError:
            return

    def _both(self, near: socket.socket) -> None:
        last = b""
        while True:
            waiting = [self.far] if getattr(self.far, "pending", lambda: 0)() else []
            ready = waiting or select.select([near, self.far], [], [])[0]
            if near in ready:
                outgoing = near.recv(BLOCK)
                if not outgoing:
                    return
                self.far.sendall(outgoing)
            if self.far in ready:
                incoming = self.far.recv(BLOCK)
                # FFmpeg would follow it to anywhere: what leads elsewhere ends here
                if not incoming or REDIRECT in last + incoming:
                    return
                last = incoming[-len(REDIRECT) :]
                near.sendall(incoming)


class Body:
    """The body of an HTTP answer as a file that FFmpeg reads."""

    def __init__(self, route: Route) -> None:
        connection = http.client.HTTPConnection(route.host, route.port)
        connection.sock = connect(route)
        headers = {"User-Agent": "aiplatform", "Accept": "*/*"}
        if route.user or route.password:
            credentials = base64.b64encode(f"{route.user}:{route.password}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        try:
            connection.request("GET", route.path, headers=headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as exc:
            raise Refused(
                f"{route.host} does not answer as a web server does: {type(exc).__name__}.", final=False
            ) from None
        if answer.status != OK:
            problem = (
                "leads to another address, which is not followed" if 300 <= answer.status < 400 else "gives no stream"
            )
            raise Refused(f"{route.host} {problem} (status {answer.status}).", final=False)
        self.kind = answer.headers.get_content_type()
        self._answer: Any = answer
        self._connection = connection

    def read(self, size: int = BLOCK) -> bytes:
        """What has come, at most `size` bytes; b"" at the end."""
        try:
            got: bytes = self._answer.read1(size)
        except (OSError, http.client.HTTPException, ValueError):
            return b""
        return got
