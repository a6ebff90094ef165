"""An HTTP server that takes files by PUT (RFC 9110, section 9.3.4), with a bearer token (RFC 6750) or without.

Any server with WebDAV does, nginx's `dav_methods PUT`, Nexus and Artifactory as raw repositories. The digest goes along
as `Repr-Digest` (RFC 9530), and the length that the server tells afterwards is compared.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import outbound
from inference.delivery.push import http_client
from inference.delivery.push.protocol import Destination, OnSent, Option, Parcel, Tested, failed


class Put:
    code: ClassVar[str] = "put"
    label: ClassVar[Any] = _("HTTP server (PUT)")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("The folder for the files: https://files.example.org/models")
    options: ClassVar[tuple[Option, ...]] = ()
    secret_label: ClassVar[Any] = _("Bearer token")
    secret_required: ClassVar[bool] = False
    has_ca: ClassVar[bool] = True

    def check(self, destination: Destination) -> None:
        """Accept everything that passed the check of the options."""

    def test(self, destination: Destination) -> Tested:
        """Request the folder, which may be hidden but must accept the credentials."""
        response = http_client.request(
            destination, "HEAD", f"{destination.address.rstrip('/')}/", http_client.token_header(destination.secret)
        )
        http_client.check_response(response, destination, good=(400, 404, 405, 501))
        return Tested()

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        self.test(destination)  # an expired token is found before gigabytes are sent
        address = http_client.below(destination.address, quote(parcel.name, safe=""))
        digest = base64.b64encode(bytes.fromhex(parcel.sha256)).decode()
        headers = {
            **http_client.token_header(destination.secret),
            "Content-Type": parcel.media_type,
            "Repr-Digest": f"sha-256=:{digest}:",
        }
        response = http_client.request(
            destination, "PUT", address, headers, body=http_client.body_of(parcel), length=parcel.size, on_sent=on_sent
        )
        http_client.check_response(response, destination)
        self._compare(destination, parcel, address, digest)
        return address

    @staticmethod
    def _compare(destination: Destination, parcel: Parcel, address: str, digest: str) -> None:
        """Refuse an uploaded file whose length or digest differs, where the server reports them."""
        response = http_client.request(destination, "HEAD", address, http_client.token_header(destination.secret))
        if response.status != 200:
            return
        length, reported_digest = response.headers.get("content-length"), response.headers.get("repr-digest", "")
        differs = "sha-256=:" in reported_digest and f"sha-256=:{digest}:" not in reported_digest
        if differs or (length is not None and length != str(parcel.size)):
            raise failed("checksum", host=http_client.host_of(destination.address), again=True)
