"""Entry points beside Django's routes: WebSockets and raw ASGI applications, asked in every way as every person."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.test import Client

from accounts.models import ApiToken, User
from accounts.services import tokens
from aiplatform import asgi
from datasets.services import uploads
from tests.matrix.answers import IN, METHOD, MISSING, REFUSED, SIGN_IN
from tests.matrix.world import PEOPLE

TABLE = Path(__file__).with_name("entry_points.txt")
METHODS = ("OPTIONS", "HEAD", "GET", "POST", "PUT", "PATCH", "DELETE")
WAYS = ("cookie", "foreign", "token", "reading")
"""How somebody shows who they are: a cookie from our own or a foreign page, a token that may write or only read."""
LEGEND = """\
# Who gets in where Django's routes end. One row per way, method and address; one letter each for:
# {people}.
# Ways: cookie  a session, sent by our own page      foreign  the same, sent by somebody else's page
#       token   a token that may write               reading  a token for reading
# WS is a handshake. Letters as in table.txt; for a handshake `-` is a refusal before it is accepted.
# Written by `python -m tests.matrix`; read every changed letter before you commit it.
"""
#: Addresses below each raw entry point, with `{upload}`, `{service}` and `{stream}` of the owner; each has some.
BELOW = {
    "/uploads/tus": ("/uploads/tus/", "/uploads/tus/{upload}", "/uploads/tus/{upload}/more"),
    "/serve/": (
        "/serve/{service}/v2/health/ready", "/serve/{service}/predict", "/serve/{service}/metrics",
        "/serve/{service}/secret", "/serve/{service}/v2/../secret", "/serve/nobody/v2/health/ready",
    ),
    "/watch/": ("/watch/{stream}/live.mjpeg", "/watch/{stream}/secret", "/watch/0/live.mjpeg"),
}  # fmt: skip
#: Handshakes beyond the routes of sockets: raw ones must not open to a socket either.
NO_SOCKETS = ("/serve/{service}/v2/health/ready", "/uploads/tus/{upload}", "/ws/nothing/", "/")


@dataclass
class Ground:
    """The people, what the owner has, and what each presents there."""

    people: dict[str, User | None]
    ids: dict[str, Any]
    shown: dict[tuple[str, str], list[tuple[bytes, bytes]]]

    def mend(self) -> None:
        """Give the owner an upload anew when a request ended it."""
        owner = self.people["owner"]
        assert owner is not None
        self.ids["upload"] = str(uploads.create(owner=owner, length=10, metadata={}).pk)


def ground(people: dict[str, User | None], ids: dict[str, Any]) -> Ground:
    """Sign everybody in, and give everybody their tokens."""
    made = Ground(people, ids, {})
    for name, user in people.items():
        for way in WAYS:
            made.shown[name, way] = _shown(user, way)
    made.mend()
    return made


def _shown(user: User | None, way: str) -> list[tuple[bytes, bytes]]:
    origin = b"http://evil.example" if way == "foreign" else b"http://testserver"
    headers = [(b"host", b"testserver"), (b"origin", origin), (b"tus-resumable", b"1.0.0"), (b"content-length", b"0")]
    if user is None:
        return headers
    if way in {"token", "reading"}:
        scope = ApiToken.Scope.READ if way == "reading" else ApiToken.Scope.WRITE
        secret = tokens.issue(user=user, name=way, scope=scope)[1]
        return [*headers, (b"authorization", f"Bearer {secret}".encode())]
    client = Client()
    client.force_login(user)
    return [*headers, (b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())]


def entry_points() -> Iterator[tuple[str, str]]:
    """(method, address) of every entry point.

    Raises:
        LookupError: a raw entry point or a socket that nobody taught this file.
    """
    for route in asgi.websocket_urlpatterns:
        yield "WS", "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", str(route.pattern))
    for address in NO_SOCKETS:
        yield "WS", address
    for beginning in asgi.RAW:
        if beginning not in BELOW:
            raise LookupError(f"{beginning} has no row: name its addresses in tests/matrix/entry_points.py.")
        for address in BELOW[beginning]:
            for method in METHODS:
                yield method, address


async def rows(here: Ground) -> dict[str, str]:
    """Letters by key, of every entry point, method and way."""
    found = {}
    for method, address in entry_points():
        for way in WAYS:
            letters = [await _letter(here, method, address, name, way) for name in PEOPLE]
            found[f"{method:<7} {way:<7} {address}"] = "".join(letters)
    return found


async def _letter(here: Ground, method: str, address: str, name: str, way: str) -> str:
    if method in {"DELETE", "PATCH"} and "{upload}" in address:
        await sync_to_async(here.mend)()
    path = address.format(**here.ids)
    ask = _shake if method == "WS" else _ask
    return await ask(path, method, here.shown[name, way])


async def _ask(path: str, method: str, headers: list[tuple[bytes, bytes]]) -> str:
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers, "scheme": "http"}
    said = await _run(scope, {"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"})
    status = next(message["status"] for message in said if message["type"] == "http.response.start")
    if status >= 500 and status != 503:
        raise AssertionError(f"{method} {path} answered {status}")
    return {401: SIGN_IN, 403: REFUSED, 404: MISSING, 405: METHOD}.get(status, IN)


async def _shake(path: str, _method: str, headers: list[tuple[bytes, bytes]]) -> str:
    scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers, "subprotocols": []}
    said = await _run(scope, {"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000})
    kinds = [message["type"] for message in said]
    if "websocket.accept" not in kinds:
        return REFUSED
    codes = [message.get("code") for message in said if message["type"] == "websocket.close"]
    return {4401: SIGN_IN, 4404: MISSING}.get(codes[0], REFUSED) if codes else IN


async def _run(scope: dict[str, Any], first: dict[str, Any], last: dict[str, Any]) -> list[dict[str, Any]]:
    """What the whole platform's application sends, when `first` arrives and then, once it settled, `last`."""
    said: list[dict[str, Any]] = []
    settled = asyncio.Event()
    given = [first]

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await settled.wait()
        return last

    async def send(message: dict[str, Any]) -> None:
        said.append(message)
        over = message["type"] in {"websocket.close", "websocket.send"}
        if over or (message["type"] == "http.response.body" and not message.get("more_body")):
            settled.set()

    application: Callable[..., Awaitable[None]] = asgi.application
    await asyncio.wait_for(application(scope, receive, send), 30)
    return said


def read() -> dict[str, str]:
    """The checked-in table: letters by key."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    return {line[len(PEOPLE) + 2 :]: line[: len(PEOPLE)] for line in lines if line and not line.startswith("#")}


def write(table: dict[str, str]) -> None:
    """Replace the checked-in table."""
    lines = [f"{letters}  {key}" for key, letters in table.items()]
    TABLE.write_text(LEGEND.format(people=", ".join(PEOPLE)) + "\n".join(lines) + "\n")
