"""An example of a protocol for a device management server: Huawei FusionDirector, which forwards files to edge nodes.

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
from inference.delivery.push.protocol import Destination, OnSent, Option, Parcel, PushFailed, Tested, failed

SESSIONS = "/redfish/v1/SessionService/Sessions"


class FusionDirector:
    code: ClassVar[str] = "fd"
    label: ClassVar[Any] = _("FusionDirector (FD)")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("Server address only: https://fd.example.org")
    options: ClassVar[tuple[Option, ...]] = (
        Option("username", _("Username"), required=True),
        Option("upload_path", _("Upload path"), _("As in the manual of your version."), required=True),
    )
    secret_label: ClassVar[Any] = _("Password")
    secret_required: ClassVar[bool] = True
    has_ca: ClassVar[bool] = True

    def check(self, destination: Destination) -> None:
        """Refuse an invalid upload path or server address.

        Raises:
            Invalid.
        """
        path = destination.option("upload_path")
        if not path.startswith("/") or path.startswith("//") or " " in path:
            raise Invalid(_("The path must start with a slash."), field="option_upload_path")
        if urlsplit(destination.address).path.strip("/"):
            raise Invalid(_("The address must be that of the server, without a path."), field="address")

    def test(self, destination: Destination) -> Tested:
        """Start a session and end it."""
        with self._session(destination):
            return Tested()

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        boundary = secrets.token_hex(16)
        name = parcel.name.replace('"', "").replace("\\", "")
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            f"Content-Type: {parcel.media_type}\r\n\r\n"
        ).encode()
        foot = f"\r\n--{boundary}--\r\n".encode()

        def body() -> Iterator[bytes]:
            yield head
            yield from parcel.pieces()
            yield foot

        with self._session(destination) as token:
            headers = {
                "X-Auth-Token": token,
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "X-Content-SHA256": parcel.sha256,
            }
            address = f"{destination.address.rstrip('/')}{destination.option('upload_path')}"
            length = len(head) + parcel.size + len(foot)
            response = http_client.request(
                destination, "POST", address, headers, body=body(), length=length, on_sent=on_sent
            )
            http_client.check_response(response, destination)
        try:
            payload = json.loads(response.body)
            resource_id = str(payload.get("@odata.id") or payload.get("id") or "")
            reported_sha256 = str(payload.get("sha256") or parcel.sha256)
        except (ValueError, AttributeError):
            resource_id, reported_sha256 = "", parcel.sha256
        if reported_sha256.lower() != parcel.sha256:
            raise failed("checksum", host=http_client.host_of(destination.address), again=True)
        return f"{address}#{resource_id[:300]}" if resource_id.isprintable() and resource_id else address

    @contextmanager
    def _session(self, destination: Destination) -> Iterator[str]:
        """Yield the token of a session that ends with the block, also after an error."""
        root = destination.address.rstrip("/")
        credentials = json.dumps({"UserName": destination.option("username"), "Password": destination.secret}).encode()
        response = http_client.request(
            destination, "POST", root + SESSIONS, {"Content-Type": "application/json"}, body=credentials
        )
        http_client.check_response(response, destination)
        token = response.headers.get("x-auth-token", "")
        if not token or not (token.isascii() and token.isprintable()):
            raise failed("answered", host=http_client.host_of(root), status=response.status, error="X-Auth-Token")
        session = urljoin(root + SESSIONS, response.headers.get("location", ""))
        try:
            yield token
        finally:
            if urlsplit(session).netloc == urlsplit(root).netloc and session != root + SESSIONS:
                self._end(destination, session, token)

    @staticmethod
    def _end(destination: Destination, session: str, token: str) -> None:
        try:
            http_client.request(destination, "DELETE", session, {"X-Auth-Token": token})
        except PushFailed:
            return  # it ends by itself after some minutes
