"""HTTP client for destinations of users: only to checked addresses, without redirects, with timeouts for every step."""

from __future__ import annotations

import http.client
import ipaddress
import select
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiplatform.lib import outbound
from aiplatform.lib.addresses import is_public
from inference.delivery.push.protocol import Destination, OnSent, Parcel, PushFailed, failed
from workers.images.containers.patience import Patience

CONNECT_S = 15.0
READ_TIMEOUT_S = 30.0  # between two bytes
PIECE_S = 120.0  # for each piece that is sent, about a megabyte
ANSWER_S = 300.0  # the far side may check gigabytes before it answers
MAX_RESPONSE_BYTES = 1 << 20
LATER = (408, 423, 425, 429, 500, 502, 503, 504)
INSUFFICIENT_STORAGE = 507
SHOWN = 200  # characters of an error text


@dataclass(frozen=True)
class Response:
    """A response: header names in lower case, at most a megabyte of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error_text(self) -> str:
        """The body as one line of text for an error message; "" where it is no text."""
        text = " ".join(self.body[: 4 * SHOWN].decode("utf-8", "replace").split())
        return "" if text.startswith("<!") or "\ufffd" in text else text[:SHOWN]


def host_of(address: str) -> str:
    """The host of an address, for messages."""
    return urlsplit(address).hostname or "–"


def reach(address: str, destination: Destination, ports: Mapping[str, int] = outbound.WEB) -> outbound.Target:
    """Return the address that a connection may use now.

    Raises:
        PushFailed: it leads inside the network, unencrypted out of it, or is not found.
    """
    host = host_of(address)
    try:
        target = outbound.resolve(address, allowed=destination.allowed, ports=ports)
    except outbound.ForbiddenAddress as exc:
        raise failed("inner", host=host) from exc
    except OSError as exc:
        raise failed("unknown", host=host, again=True) from exc
    if target.scheme == "http" and is_public(ipaddress.ip_address(target.address)):
        raise failed("insecure", host=host)
    return target


def ssl_context(destination: Destination) -> ssl.SSLContext:
    """Return an SSL context that trusts the usual authorities and that of the destination.

    Raises:
        PushFailed: the authority of the destination is not a valid certificate.
    """
    context = ssl.create_default_context()
    if destination.ca:
        try:
            context.load_verify_locations(cadata=destination.ca)
        except (ssl.SSLError, ValueError, TypeError) as exc:  # TypeError: letters that are not ASCII
            raise failed("bad_ca") from exc
    return context


def request(
    destination: Destination,
    method: str,
    address: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: bytes | Iterable[bytes] = b"",
    length: int | None = None,
    on_sent: OnSent = lambda _count: None,
) -> Response:
    """Send one request and return its response, whatever the status.

    Args:
        body: bytes, or pieces that are `length` bytes together.
        on_sent: called with the number of bytes of each piece that was sent.

    Raises:
        PushFailed: no valid response in time; `again` tells whether to try later.
    """
    target = reach(address, destination)
    connection = outbound.Pinned(target, READ_TIMEOUT_S, ssl_context(destination))
    with Patience(CONNECT_S) as patience:
        try:
            connection.connect()
            patience.watch(connection.sock)
            connection.putrequest(method, target.path, skip_accept_encoding=True)
            pieces = [body] if isinstance(body, bytes) else body
            size = len(body) if isinstance(body, bytes) else length or 0
            sent_headers = {"User-Agent": "aiplatform", "Content-Length": str(size), **(headers or {})}
            for name, value in sent_headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            _send(connection, pieces, on_sent, patience)
            response_timeout_s = ANSWER_S if length else READ_TIMEOUT_S  # a user may wait for a test on a page
            patience.extend(response_timeout_s)
            connection.sock.settimeout(response_timeout_s)
            response = connection.getresponse()
            return Response(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(MAX_RESPONSE_BYTES),
            )
        except PushFailed:
            raise
        except ssl.SSLCertVerificationError as exc:
            raise failed("certificate", host=target.host, error=exc.verify_message) from exc
        except (OSError, http.client.HTTPException, ValueError) as exc:  # ValueError: a header that cannot be written
            reason = "timed out" if patience.over else str(exc) or type(exc).__name__
            raise failed("silent", host=target.host, error=reason, again=not isinstance(exc, ValueError)) from exc
        finally:
            connection.close()


def _send(connection: outbound.Pinned, pieces: Iterable[bytes], on_sent: OnSent, patience: Patience) -> None:
    """Send the body; a server that responds before the end has refused it, and its response is read."""
    plain = not isinstance(connection.sock, ssl.SSLSocket)
    try:
        for piece in pieces:
            if not piece:
                continue
            if plain and _has_response(connection.sock):
                return
            connection.send(piece)
            on_sent(len(piece))
            patience.extend(PIECE_S)
    except (BrokenPipeError, ConnectionResetError):
        if patience.over:
            raise
        # the response sent before the connection closed may still be readable


def _has_response(channel: socket.socket) -> bool:
    return bool(select.select([channel], [], [], 0)[0])


def check_response(response: Response, destination: Destination, *, good: tuple[int, ...] = ()) -> Response:
    """Refuse a response whose status is neither 2xx nor one of `good`.

    Raises:
        PushFailed: with what the status means, and what to do about it.
    """
    host, status = host_of(destination.address), response.status
    if response.is_good or status in good:
        return response
    if status in (401, 403):
        raise failed("credentials", host=host, status=status)
    if status == INSUFFICIENT_STORAGE:
        raise failed("no_room", host=host)
    if status == 413:
        raise failed("too_large", host=host)
    if status in (404, 405, 410):
        raise failed("not_found", host=host, status=status)
    if 300 <= status < 400:
        raise failed("redirected", host=host, other=host_of(response.headers.get("location", "")))
    raise failed("answered", host=host, status=status, error=response.error_text or "–", again=status in LATER)


def is_explained_status(status: int) -> bool:
    """Whether `check_response` has a message of its own for a status."""
    return 300 <= status < 400 or status in (401, 403, 404, 405, 410, 413, INSUFFICIENT_STORAGE)


def token_header(secret: str) -> dict[str, str]:
    """A bearer token as a header (RFC 6750); nothing without one."""
    return {"Authorization": f"Bearer {secret}"} if secret else {}


def below(address: str, name: str) -> str:
    """The address of a file in a folder; `name` is one that a URL takes as it is."""
    return f"{address.rstrip('/')}/{name}"


def body_of(parcel: Parcel) -> Iterable[bytes]:
    """All of its bytes."""
    return parcel.pieces()
