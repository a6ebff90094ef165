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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

TIMEOUT_S = 5.0
ANSWER_BYTES = 4096
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Not one machine of the wide net, whatever this Python's own table says: the registries of special-purpose addresses
#: (IANA), also where they call a range reachable: those are relays and anycast services next to the caller.
_SPECIAL = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    )
]  # fmt: skip
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out; the rest is local, reserved or to many
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class ForbiddenAddress(Invalid):
    """The address is in this machine's own network, or no web address."""

    code = "forbidden_address"
    field = "webhook_url"


@dataclass(frozen=True, slots=True)
class Target:
    """A checked address: where to connect, and what the URL says."""

    scheme: str
    host: str
    port: int
    path: str
    address: str


def leads_to(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to, mapped or by NAT64's well-known prefix; else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    hidden = address.ipv4_mapped
    if hidden is None and address in _NAT64:
        hidden = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return hidden or address


def is_public(address: Address) -> bool:
    """Whether an address is public and of a single machine. Tunnels (6to4, Teredo) are not: they end anywhere."""
    inner = leads_to(address)
    if inner.version == 6 and inner not in _UNICAST:
        return False
    return inner.is_global and not any(inner in network for network in _SPECIAL)


def _allowed(host: str, address: Address, allowed: Iterable[str]) -> bool:
    for entry in allowed:
        if entry.lower() == host:
            return True
        with suppress(ValueError):
            if leads_to(address) in ipaddress.ip_network(entry, strict=False):
                return True
    return False


def resolve(url: str, *, allowed: Sequence[str] = ()) -> Target:
    """Return where a request to `url` may go.

    Args:
        allowed: the operator's exceptions: host names, addresses, networks ("10.1.0.0/16").

    Raises:
        ForbiddenAddress: another scheme than http and https, a name or password in it, or any of its addresses
            is private, local, or otherwise not of the wide net.
        OSError: the name does not resolve now.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError as exc:
        raise ForbiddenAddress(_("This is not a web address.")) from exc
    if parts.scheme not in {"http", "https"} or not host or any(ord(char) <= 32 for char in url):
        raise ForbiddenAddress(_("The address begins with https:// or http://."))
    if parts.username is not None or parts.password is not None:
        raise ForbiddenAddress(_("The address holds no name and no password."))
    if "%" in host:  # a link of this machine
        raise ForbiddenAddress(_("This is not a web address."))
    try:
        host.encode("idna")
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as exc:
        raise ForbiddenAddress(_("This is not a web address.")) from exc
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in resolved]
    for address in addresses:
        if not is_public(address) and not _allowed(host, address, allowed):
            raise ForbiddenAddress(
                _("%(host)s lies inside this network; only an operator can allow it.") % {"host": host}
            )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    path = quote(path, safe="!#$%&'()*+,/:;=?@[]~")  # what is not ASCII; what is encoded already stays
    return Target(parts.scheme, host, port, path, str(addresses[0]))


class _Pinned(http.client.HTTPConnection):
    """A connection to the checked address, whatever the name resolves to by now."""

    def __init__(self, target: Target, timeout_s: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout_s)
        self.target = target

    def connect(self) -> None:
        plain = socket.create_connection((self.target.address, self.target.port), self.timeout)
        if self.target.scheme == "https":
            self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.target.host)
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
        OSError, http.client.HTTPException: nobody answered properly within `timeout_s` seconds.
    """
    target = resolve(url, allowed=allowed)
    connection = _Pinned(target, timeout_s)
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
