"""Requests to addresses that people typed: never to the platform's own network.

The name is resolved once, every answer is judged, and the connection goes to the very address that was judged:
a name that answers differently a moment later changes nothing. Redirects are not followed.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

from django.utils.translation import gettext as _

from aiplatform.lib.addresses import is_allowed, is_public
from aiplatform.lib.errors import Invalid

TIMEOUT_S = 5.0
ANSWER_BYTES = 4096
WEB: Mapping[str, int] = {"https": 443, "http": 80}


class ForbiddenAddress(Invalid, code="forbidden_address", field="webhook_url"):
    """The address is in this machine's own network, or no web address."""


class InnerAddress(ForbiddenAddress):
    """The address is inside this network; an operator could allow it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address: where to connect, and what the URL says."""

    scheme: str
    host: str
    port: int
    path: str
    address: str


def resolve(url: str, *, allowed: Sequence[str] = (), ports: Mapping[str, int] = WEB) -> Target:
    """Return where a request to `url` may go.

    Args:
        allowed: the operator's exceptions: host names, addresses, networks ("10.1.0.0/16").
        ports: the schemes that are spoken, each with its usual port.

    Raises:
        ForbiddenAddress: another scheme, a name or password in it, or any of its addresses is private, local, or
            otherwise not of the wide net.
        OSError: the name does not resolve now.
    """
    parts, host, port = _parts(url, ports)
    try:
        host.encode("idna")
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:
        raise ForbiddenAddress(_("Not a web address.")) from exc
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in resolved]
    for address in addresses:
        _judge(host, address, allowed)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    path = quote(path, safe="!#$%&'()*+,/:;=?@[]~")  # what is not ASCII; what is encoded already stays
    return Target(parts.scheme, host, port, path, str(addresses[0]))


def check_written(url: str, *, allowed: Sequence[str] = ()) -> None:
    """Refuse what may be refused without asking who has the name: for addresses that are called later.

    Raises:
        ForbiddenAddress: see `resolve`.
    """
    _parts_of, host, _port = _parts(url, WEB)
    with suppress(ValueError):  # a name
        _judge(host, ipaddress.ip_address(host), allowed)


def _parts(url: str, ports: Mapping[str, int]) -> tuple[SplitResult, str, int]:
    """Return the parts of an address that requests may be sent to, its host and its port."""
    try:
        parts = urlsplit(url)
        port = parts.port or ports.get(parts.scheme, 0)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError as exc:
        raise ForbiddenAddress(_("Not a web address.")) from exc
    if parts.scheme not in ports or not host or any(ord(char) <= 32 for char in url):
        if ports is WEB:
            raise ForbiddenAddress(_("The address must start with https:// or http://."))
        schemes = ", ".join(f"{scheme}://" for scheme in ports)
        raise ForbiddenAddress(_("The address must start with %(known)s.") % {"known": schemes})
    if parts.username is not None or parts.password is not None:
        raise ForbiddenAddress(_("The address must not contain a username or password."))
    if "%" in host:  # a link of this machine
        raise ForbiddenAddress(_("Not a web address."))
    return parts, host, port


def _judge(host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address, allowed: Sequence[str]) -> None:
    if not is_public(address) and not is_allowed(host, address, allowed):
        raise InnerAddress(_("%(host)s is inside this network; only an operator can allow it.") % {"host": host})


class Pinned(http.client.HTTPConnection):
    """A connection to the checked address, whatever the name resolves to by now.

    Args:
        timeout_s: for connecting, and between two bytes.
        trust: whose certificates are believed; None: the machine's own authorities.
    """

    def __init__(self, target: Target, timeout_s: float, trust: ssl.SSLContext | None = None) -> None:
        super().__init__(target.host, target.port, timeout=timeout_s)
        self.target, self.trust = target, trust

    def connect(self) -> None:
        plain = socket.create_connection((self.target.address, self.target.port), self.timeout)
        if self.target.scheme == "https":
            trust = self.trust or ssl.create_default_context()
            self.sock = trust.wrap_socket(plain, server_hostname=self.target.host)
        else:
            self.sock = plain


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
) -> int:
    """POST `body` and return the status. A redirect is an answer like any other.

    Raises:
        ForbiddenAddress: see `resolve`.
        OSError, http.client.HTTPException: no valid response within `timeout_s` seconds.
    """
    target = resolve(url, allowed=allowed)
    connection = Pinned(target, timeout_s)
    try:
        connection.connect()
        # A server that answers one byte a second keeps every single read alive: the whole has an end, too.
        end = threading.Timer(timeout_s, _hang_up, [connection])
        end.daemon = True
        end.start()
        try:
            connection.request("POST", target.path, body, dict(headers))
            answer = connection.getresponse()
            answer.read(ANSWER_BYTES)
            return answer.status
        finally:
            end.cancel()
    finally:
        connection.close()


def _hang_up(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
