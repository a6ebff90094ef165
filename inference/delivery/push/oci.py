"""A registry of containers: the package becomes an artifact, which `oras pull` and others fetch.

https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md (pushing blobs in chunks, manifests) and
https://github.com/opencontainers/image-spec/blob/v1.1.0/manifest.md#guidelines-for-artifact-usage (an empty config,
`artifactType`). Blobs are known by their digests, so the registry refuses what came damaged, and one that is there
already is not sent again.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlencode, urljoin, urlsplit

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import outbound
from aiplatform.lib.challenges import parse_challenge
from aiplatform.lib.errors import Invalid
from inference.delivery.push import http_client
from inference.delivery.push.protocol import Came, Option, Parcel, Place, PushFailed, Tested, failed

NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*\Z")
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}\Z")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ARTIFACT = "application/vnd.aiplatform.model.v1"
EMPTY = b"{}"
CHUNK = 32 << 20
MAX_RESUMED = 5
MAX_TOKEN_BYTES = 16 << 10
Body = Callable[[], Iterable[bytes]]


class Oci:
    code: ClassVar[str] = "oci"
    words: ClassVar[Any] = _("OCI registry")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("Registry and repository: https://registry.example.org/lab/models")
    options: ClassVar[tuple[Option, ...]] = (
        Option("username", _("Username"), _("Empty: nobody signs in.")),
        Option("tag", _("Tag"), _("Empty: made of the model and its version, cells-v2.")),
    )
    secret_words: ClassVar[Any] = _("Password or token")
    secret_required: ClassVar[bool] = False
    has_ca: ClassVar[bool] = True

    def check(self, place: Place) -> None:
        """Refuse a repository or a tag that no registry takes.

        Raises:
            Invalid.
        """
        if not NAME.match(urlsplit(place.address).path.strip("/")):
            said = _("Behind the registry stands a repository in lower case: https://registry.example.org/lab/models")
            raise Invalid(said, field="address")
        if place.option("tag") and not TAG.match(place.option("tag")):
            raise Invalid(_("A tag has letters, digits and _ . - only."), field="option_tag")
        if ":" in place.option("username"):
            raise Invalid(_("A username has no colon."), field="option_username")

    def test(self, place: Place) -> Tested:
        """Begin an upload and take it back: that shows that the account may push."""
        asked = Registry(place)
        place_of_upload = asked.begin()
        with contextlib.suppress(PushFailed):  # uploads that nobody goes on with end by themselves
            asked.ask("DELETE", place_of_upload)
        return Tested()

    def send(self, place: Place, parcel: Parcel, came: Came) -> str:
        asked = Registry(place)
        asked.blob(f"sha256:{parcel.sha256}", parcel.size, parcel.pieces, came)
        empty = f"sha256:{hashlib.sha256(EMPTY).hexdigest()}"
        asked.blob(empty, len(EMPTY), lambda begin, end: [EMPTY[begin:end]], lambda _count: None)
        tag = place.option("tag") or tag_of(parcel)
        digest = asked.manifest(tag, manifest(parcel))
        return f"{urlsplit(place.address).netloc}/{asked.name}:{tag}@{digest}"


def tag_of(parcel: Parcel) -> str:
    """A tag made of the model and its version: cells-v2. A name that has no such signs gives v2."""
    plain = re.sub(r"[^a-zA-Z0-9_.-]+", "-", parcel.model).strip("-._")[:100]
    return f"{plain}-v{parcel.number}" if plain else f"v{parcel.number}"


def manifest(parcel: Parcel) -> bytes:
    """The manifest of a package; the same bytes each time."""
    empty = {"mediaType": "application/vnd.oci.empty.v1+json", "size": len(EMPTY),
             "digest": f"sha256:{hashlib.sha256(EMPTY).hexdigest()}"}  # fmt: skip
    layer = {"mediaType": parcel.media_type, "size": parcel.size, "digest": f"sha256:{parcel.sha256}",
             "annotations": {"org.opencontainers.image.title": parcel.name}}  # fmt: skip
    whole = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": ARTIFACT, "config": empty, "layers": [layer],
             "annotations": {"org.opencontainers.image.title": parcel.model,
                             "org.opencontainers.image.version": str(parcel.number)}}  # fmt: skip
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


class Registry:
    """One repository of one registry, asked by one account."""

    def __init__(self, place: Place) -> None:
        parts = urlsplit(place.address)
        self.place, self.host, self.name = place, parts.hostname or "–", parts.path.strip("/")
        self.root, self.netloc = f"{parts.scheme}://{parts.netloc}", parts.netloc
        self.proof: dict[str, str] = {}

    def begin(self) -> str:
        """Begin an upload; the address that takes its bytes."""
        answer = self.ask("POST", f"{self.root}/v2/{self.name}/blobs/uploads/")
        http_client.judge(answer, self.place)
        return self._location(answer)

    def blob(self, digest: str, size: int, pieces: Callable[[int, int], Iterable[bytes]], came: Came) -> None:
        """Have a blob there: sent chunk by chunk, and on from where a chunk was cut."""
        if self.ask("HEAD", f"{self.root}/v2/{self.name}/blobs/{digest}").status == 200:
            came(size)
            return
        answer = self.ask("POST", f"{self.root}/v2/{self.name}/blobs/uploads/")
        http_client.judge(answer, self.place)
        least = answer.headers.get("oci-chunk-min-length", "")
        chunk = max(CHUNK, int(least) if least.isdecimal() and len(least) < 12 else 0)
        where, at, resumed = self._location(answer), 0, 0
        while at < size:
            end = min(at + chunk, size)
            taken = self._chunk(where, partial(pieces, at, end), at, end, came)
            if taken is not None:
                where, at = self._location(taken, where), end
                continue
            resumed += 1
            if resumed > MAX_RESUMED:
                raise failed("silent", host=self.host, error="cut", again=True)
            where, at = self._resumed(where, size)
        end_of = f"{where}{'&' if '?' in where else '?'}{urlencode({'digest': digest})}"
        answer = self.ask("PUT", end_of, {"Content-Type": "application/octet-stream"})
        if answer.status in (400, 416) and (b"DIGEST" in answer.body or b"SIZE" in answer.body):
            raise failed("checksum", host=self.host, again=True)
        http_client.judge(answer, self.place)

    def _chunk(self, where: str, body: Body, begin: int, end: int, came: Came) -> http_client.Answer | None:
        """Send a part of a blob; None where it was cut, or the registry wants another part."""
        headers = {"Content-Type": "application/octet-stream", "Content-Range": f"{begin}-{end - 1}"}
        try:
            answer = self.ask("PATCH", where, headers, body, end - begin, came)
        except PushFailed as exc:
            if not exc.again:
                raise
            return None
        return None if answer.status == 416 else http_client.judge(answer, self.place)

    def _resumed(self, where: str, size: int) -> tuple[str, int]:
        """Where to go on: address and first byte that is missing."""
        answer = self.ask("GET", where)
        http_client.judge(answer, self.place)
        last = re.match(r"(?:bytes=)?0-(\d{1,15})\Z", answer.headers.get("range", ""))
        return self._location(answer, where), min(int(last.group(1)) + 1, size) if last else 0

    def manifest(self, tag: str, text: bytes) -> str:
        """Put a manifest under a tag; its digest."""
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        url = f"{self.root}/v2/{self.name}/manifests/{tag}"
        answer = http_client.judge(
            self.ask("PUT", url, {"Content-Type": MANIFEST}, lambda: [text], len(text)), self.place
        )
        if answer.headers.get("docker-content-digest", digest) != digest:
            raise failed("checksum", host=self.host, again=True)
        return digest

    def ask(
        self, method: str, url: str, headers: dict[str, str] | None = None, body: Body = lambda: (), length: int = 0,
        came: Came = lambda _count: None,
    ) -> http_client.Answer:  # fmt: skip
        """One question, signed in where the registry wants that; a token that ran out is fetched anew."""
        for again in (False, True):
            sent = {"Accept": MANIFEST, **self.proof, **(headers or {})}
            answer = http_client.ask(self.place, method, url, sent, body=body(), length=length, came=came)
            if answer.status != 401 or again:
                break
            self.proof = self._signed_in(answer.headers.get("www-authenticate", ""))
        if answer.status in (401, 403):
            raise failed("credentials", host=self.host, status=answer.status)
        return answer

    def _location(self, answer: http_client.Answer, otherwise: str = "") -> str:
        """Where an upload goes on. Our proof goes to no other host."""
        url = urljoin(f"{self.root}/", answer.headers.get("location", otherwise))
        if urlsplit(url).netloc != self.netloc or f"{urlsplit(url).scheme}://" not in self.root:
            raise failed("redirected", host=self.host, other=http_client.host_of(url))
        return url

    def _signed_in(self, challenge: str) -> dict[str, str]:
        scheme, told = parse_challenge(challenge)
        username = self.place.option("username")
        both = base64.b64encode(f"{username}:{self.place.secret}".encode()).decode()
        basic = {"Authorization": f"Basic {both}"} if username else {}
        if scheme == "basic" and basic:
            return basic
        if scheme != "bearer":
            raise failed("credentials", host=self.host, status=401)
        realm = told.get("realm", "")
        if not (realm.startswith("https://") or realm.startswith(f"{self.root}/")):
            raise failed("redirected", host=self.host, other=http_client.host_of(realm))  # a password in the open
        asked = {"service": told.get("service", ""), "scope": f"repository:{self.name}:pull,push"}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(asked)}"
        answer = http_client.ask(self.place, "GET", url, basic)
        if answer.status in (400, 401, 403):
            raise failed("credentials", host=self.host, status=answer.status)
        http_client.judge(answer, self.place)
        try:
            found = json.loads(answer.body[:MAX_TOKEN_BYTES])
            token = str(found.get("token") or found["access_token"])
            if not (token.isascii() and token.isprintable()):
                raise ValueError
        except (ValueError, KeyError, AttributeError) as exc:
            raise failed("answered", host=self.host, status=answer.status, error="token") from exc
        return {"Authorization": f"Bearer {token}"}
