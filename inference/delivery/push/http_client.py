"""HTTP to places of people's own: to the address that was judged, without redirects, with an end to everything."""

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
from inference.delivery.push.protocol import Came, Parcel, Place, PushFailed, failed
from workers.images.containers.patience import Patience

CONNECT_S = 15.0
READ_TIMEOUT_S = 30.0  # between two bytes
PIECE_S = 120.0  # for each piece that is sent, about a megabyte
ANSWER_S = 300.0  # the far side may check gigabytes before it answers
MAX_RESPONSE_BYTES = 1 << 20
LATER = (408, 423, 425, 429, 500, 502, 503, 504)
INSUFFICIENT_STORAGE = 507
SHOWN = 200  # characters of what a server says


@dataclass(frozen=True)
class Answer:
    """What came back: header names in lower case, at most a megabyte of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """Its words for people, one line; "" where they are no text."""
        text = " ".join(self.body[: 4 * SHOWN].decode("utf-8", "replace").split())
        return "" if text.startswith("<!") or "\ufffd" in text else text[:SHOWN]


def host_of(address: str) -> str:
    """The host of an address, for messages."""
    return urlsplit(address).hostname or "–"


def reach(address: str, place: Place, ports: Mapping[str, int] = outbound.WEB) -> outbound.Target:
    """Where a connection may go now.

    Raises:
        PushFailed: it leads inside the network, unencrypted out of it, or is not found.
    """
    host = host_of(address)
    try:
        target = outbound.resolve(address, allowed=place.allowed, ports=ports)
    except outbound.ForbiddenAddress as exc:
        raise failed("inner", host=host) from exc
    except OSError as exc:
        raise failed("unknown", host=host, again=True) from exc
    if target.scheme == "http" and is_public(ipaddress.ip_address(target.address)):
        raise failed("insecure", host=host)
    return target


def trust_of(place: Place) -> ssl.SSLContext:
    """Whose certificates are believed.

    Raises:
        PushFailed: what was given is no certificate.
    """
    trust = ssl.create_default_context()
    if place.ca:
        try:
            trust.load_verify_locations(cadata=place.ca)
        except (ssl.SSLError, ValueError, TypeError) as exc:  # TypeError: letters that are not ASCII
            raise failed("bad_ca") from exc
    return trust


def ask(
    place: Place,
    method: str,
    address: str,
    headers: Mapping[str, str] | None = None,
    *,
    body: bytes | Iterable[bytes] = b"",
    length: int | None = None,
    came: Came = lambda _count: None,
) -> Answer:
    """One request and its answer, whatever its status.

    Args:
        body: bytes, or pieces that are `length` bytes together.
        came: called with the bytes of each piece that left.

    Raises:
        PushFailed: nobody answers properly, in time; `again` says whether to try later.
    """
    target = reach(address, place)
    connection = outbound.Pinned(target, READ_TIMEOUT_S, trust_of(place))
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
            _send(connection, pieces, came, patience)
            answer_s = ANSWER_S if length else READ_TIMEOUT_S  # somebody may wait for a test on a page
            patience.extend(answer_s)
            connection.sock.settimeout(answer_s)
            answer = connection.getresponse()
            return Answer(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(MAX_RESPONSE_BYTES),
            )
        except PushFailed:
            raise
        except ssl.SSLCertVerificationError as exc:
            raise failed("certificate", host=target.host, error=exc.verify_message) from exc
        except (OSError, http.client.HTTPException, ValueError) as exc:  # ValueError: a header that cannot be written
            said = "timed out" if patience.over else str(exc) or type(exc).__name__
            raise failed("silent", host=target.host, error=said, again=not isinstance(exc, ValueError)) from exc
        finally:
            connection.close()


def _send(connection: outbound.Pinned, pieces: Iterable[bytes], came: Came, patience: Patience) -> None:
    """Send the body; one who answers before its end has refused it, and is listened to."""
    plain = not isinstance(connection.sock, ssl.SSLSocket)
    try:
        for piece in pieces:
            if not piece:
                continue
            if plain and _has_answered(connection.sock):
                return
            connection.send(piece)
            came(len(piece))
            patience.extend(PIECE_S)
    except (BrokenPipeError, ConnectionResetError):
        if patience.over:
            raise
        # what it said before it hung up may still be there to read


def _has_answered(channel: socket.socket) -> bool:
    return bool(select.select([channel], [], [], 0)[0])


def judge(answer: Answer, place: Place, *, good: tuple[int, ...] = ()) -> Answer:
    """Refuse an answer that is none of 2xx and `good`.

    Raises:
        PushFailed: with what the status means, and what to do about it.
    """
    host, status = host_of(place.address), answer.status
    if answer.is_good or status in good:
        return answer
    if status in (401, 403):
        raise failed("credentials", host=host, status=status)
    if status == INSUFFICIENT_STORAGE:
        raise failed("no_room", host=host)
    if status == 413:
        raise failed("too_large", host=host)
    if status in (404, 405, 410):
        raise failed("not_found", host=host, status=status)
    if 300 <= status < 400:
        raise failed("redirected", host=host, other=host_of(answer.headers.get("location", "")))
    raise failed("answered", host=host, status=status, error=answer.said or "–", again=status in LATER)


def is_told_by_status(status: int) -> bool:
    """Whether `judge` says more of a status than its number."""
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
