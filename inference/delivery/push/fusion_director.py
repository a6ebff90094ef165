"""An example of a way to a server that manages devices: Huawei FusionDirector, which hands files on to edge nodes.

Sign in by a session of Redfish (DMTF DSP0266, section "Session-based authentication": `X-Auth-Token`), upload the file
as a form (RFC 7578), end the session. The path that takes files differs among versions, so it is an option. This was
only ever tried against a server of the tests.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import outbound
from aiplatform.lib.errors import Invalid
from inference.delivery.push import http_client
from inference.delivery.push.protocol import Came, Option, Parcel, Place, PushFailed, Tested, failed

SESSIONS = "/redfish/v1/SessionService/Sessions"


class FusionDirector:
    code: ClassVar[str] = "fd"
    words: ClassVar[Any] = _("FusionDirector (FD)")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("The server alone: https://fd.example.org")
    options: ClassVar[tuple[Option, ...]] = (
        Option("username", _("Username"), required=True),
        Option("upload_path", _("Path that takes files"), _("As the manual of your version names it."), required=True),
    )
    secret_words: ClassVar[Any] = _("Password")
    secret_required: ClassVar[bool] = True
    has_ca: ClassVar[bool] = True

    def check(self, place: Place) -> None:
        """Refuse a path that is none.

        Raises:
            Invalid.
        """
        path = place.option("upload_path")
        if not path.startswith("/") or path.startswith("//") or " " in path:
            raise Invalid(_("The path begins with a slash."), field="option_upload_path")
        if urlsplit(place.address).path.strip("/"):
            raise Invalid(_("The address is that of the server, without a path."), field="address")

    def test(self, place: Place) -> Tested:
        """Begin a session and end it."""
        with self._session(place):
            return Tested()

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        border = secrets.token_hex(16)
        name = parcel.name.replace('"', "").replace("\\", "")
        head = (
            f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: {parcel.media_type}\r\n\r\n"
        ).encode()
        foot = f"\r\n--{border}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield head
            yield from parcel.pieces()
            yield foot

        with self._session(place) as token:
            headers = {
                "X-Auth-Token": token,
                "Content-Type": f"multipart/form-data; boundary={border}",
                "X-Content-SHA256": parcel.sha256,
            }
            address = f"{place.address.rstrip('/')}{place.option('upload_path')}"
            length = len(head) + parcel.size + len(foot)
            answer = http_client.ask(place, "POST", address, headers, body=body(), length=length, came=came)
            http_client.judge(answer, place)
        try:
            told = json.loads(answer.body)
            where = str(told.get("@odata.id") or told.get("id") or "")
            told_sum = str(told.get("sha256") or parcel.sha256)
        except (ValueError, AttributeError):
            where, told_sum = "", parcel.sha256
        if told_sum.lower() != parcel.sha256:
            raise failed("checksum", host=http_client.host_of(place.address), again=True)
        return f"{address}#{where[:300]}" if where.isprintable() and where else address

    @contextmanager
    def _session(self, place: Place) -> Iterator[str]:
        """A session's token; the session ends with the block, whatever happens in it."""
        root = place.address.rstrip("/")
        asked = json.dumps({"UserName": place.option("username"), "Password": place.secret}).encode()
        answer = http_client.ask(place, "POST", root + SESSIONS, {"Content-Type": "application/json"}, body=asked)
        http_client.judge(answer, place)
        token = answer.headers.get("x-auth-token", "")
        if not token or not (token.isascii() and token.isprintable()):
            raise failed("answered", host=http_client.host_of(root), status=answer.status, error="X-Auth-Token")
        session = urljoin(root + SESSIONS, answer.headers.get("location", ""))
        try:
            yield token
        finally:
            if urlsplit(session).netloc == urlsplit(root).netloc and session != root + SESSIONS:
                self._end(place, session, token)

    @staticmethod
    def _end(place: Place, session: str, token: str) -> None:
        try:
            http_client.ask(place, "DELETE", session, {"X-Auth-Token": token})
        except PushFailed:
            return  # it ends by itself after some minutes
