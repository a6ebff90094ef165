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
from inference.delivery.push.protocol import Came, Option, Parcel, Place, Tested, failed


class Put:
    code: ClassVar[str] = "put"
    words: ClassVar[Any] = _("HTTP server (PUT)")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("The folder that files are put into: https://files.example.org/models")
    options: ClassVar[tuple[Option, ...]] = ()
    secret_words: ClassVar[Any] = _("Bearer token")
    secret_required: ClassVar[bool] = False
    has_ca: ClassVar[bool] = True

    def check(self, place: Place) -> None:
        """All was said by its options."""

    def test(self, place: Place) -> Tested:
        """Ask for the folder: it may be hidden, but not behind other credentials."""
        answer = http_client.ask(place, "HEAD", f"{place.address.rstrip('/')}/", http_client.token_header(place.secret))
        http_client.judge(answer, place, good=(400, 404, 405, 501))
        return Tested()

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        self.test(place)  # so that nobody sends gigabytes to hear that a token is out of date
        address = http_client.below(place.address, quote(parcel.name, safe=""))
        digest = base64.b64encode(bytes.fromhex(parcel.sha256)).decode()
        headers = {
            **http_client.token_header(place.secret),
            "Content-Type": parcel.media_type,
            "Repr-Digest": f"sha-256=:{digest}:",
        }
        answer = http_client.ask(
            place, "PUT", address, headers, body=http_client.body_of(parcel), length=parcel.size, came=came
        )
        http_client.judge(answer, place)
        self._compare(place, parcel, address, digest)
        return address

    @staticmethod
    def _compare(place: Place, parcel: Parcel, address: str, digest: str) -> None:
        """Refuse a file that is there with another length or digest, where the server tells them."""
        there = http_client.ask(place, "HEAD", address, http_client.token_header(place.secret))
        if there.status != 200:
            return
        length, told = there.headers.get("content-length"), there.headers.get("repr-digest", "")
        wrong = "sha-256=:" in told and f"sha-256=:{digest}:" not in told
        if wrong or (length is not None and length != str(parcel.size)):
            raise failed("checksum", host=http_client.host_of(place.address), again=True)
