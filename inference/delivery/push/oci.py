"""Container registry: the package becomes an artifact, which `oras pull` and others fetch.

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
from inference.delivery.push.protocol import Destination, OnSent, Option, Parcel, PushFailed, Tested, failed

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
    label: ClassVar[Any] = _("OCI registry")
    ports: ClassVar[Mapping[str, int]] = outbound.WEB
    address_help: ClassVar[Any] = _("Registry and repository: https://registry.example.org/lab/models")
    options: ClassVar[tuple[Option, ...]] = (
        Option("username", _("Username"), _("Leave empty for anonymous access.")),
        Option("tag", _("Tag"), _("Leave empty to combine the model and its version, cells-v2.")),
    )
    secret_label: ClassVar[Any] = _("Password or token")
    secret_required: ClassVar[bool] = False
    has_ca: ClassVar[bool] = True

    def check(self, destination: Destination) -> None:
        """Refuse a repository name or a tag that registries do not accept.

        Raises:
            Invalid.
        """
        if not NAME.match(urlsplit(destination.address).path.strip("/")):
            message = _(
                "The address of the registry is followed by a repository in lower case: "
                "https://registry.example.org/lab/models"
            )
            raise Invalid(message, field="address")
        if destination.option("tag") and not TAG.match(destination.option("tag")):
            raise Invalid(_("A tag can contain only letters, digits and _ . -."), field="option_tag")
        if ":" in destination.option("username"):
            raise Invalid(_("A username must not contain a colon."), field="option_username")

    def test(self, destination: Destination) -> Tested:
        """Start an upload and cancel it, which shows that the account may push."""
        registry = Registry(destination)
        upload_url = registry.start_upload()
        with contextlib.suppress(PushFailed):  # registries end unfinished uploads
            registry.request("DELETE", upload_url)
        return Tested()

    def send(self, destination: Destination, parcel: Parcel, on_sent: OnSent) -> str:
        registry = Registry(destination)
        registry.blob(f"sha256:{parcel.sha256}", parcel.size, parcel.pieces, on_sent)
        empty = f"sha256:{hashlib.sha256(EMPTY).hexdigest()}"
        registry.blob(empty, len(EMPTY), lambda begin, end: [EMPTY[begin:end]], lambda _count: None)
        tag = destination.option("tag") or tag_of(parcel)
        digest = registry.manifest(tag, manifest(parcel))
        return f"{urlsplit(destination.address).netloc}/{registry.name}:{tag}@{digest}"


def tag_of(parcel: Parcel) -> str:
    """A tag made of the model and its version: cells-v2. A name that has no such signs gives v2."""
    plain = re.sub(r"[^a-zA-Z0-9_.-]+", "-", parcel.model).strip("-._")[:100]
    return f"{plain}-v{parcel.number}" if plain else f"v{parcel.number}"


def manifest(parcel: Parcel) -> bytes:
    """Return the manifest of a package, the same bytes each time."""
    empty = {"mediaType": "application/vnd.oci.empty.v1+json", "size": len(EMPTY),
             "digest": f"sha256:{hashlib.sha256(EMPTY).hexdigest()}"}  # fmt: skip
    layer = {"mediaType": parcel.media_type, "size": parcel.size, "digest": f"sha256:{parcel.sha256}",
             "annotations": {"org.opencontainers.image.title": parcel.name}}  # fmt: skip
    document = {"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": ARTIFACT, "config": empty, "layers": [layer],
             "annotations": {"org.opencontainers.image.title": parcel.model,
                             "org.opencontainers.image.version": str(parcel.number)}}  # fmt: skip
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


class Registry:
    """One repository of one registry, accessed with one account."""

    def __init__(self, destination: Destination) -> None:
        parts = urlsplit(destination.address)
        self.destination, self.host, self.name = destination, parts.hostname or "–", parts.path.strip("/")
        self.root, self.netloc = f"{parts.scheme}://{parts.netloc}", parts.netloc
        self.proof: dict[str, str] = {}

    def start_upload(self) -> str:
        """Start an upload and return the address that takes its bytes."""
        response = self.request("POST", f"{self.root}/v2/{self.name}/blobs/uploads/")
        http_client.check_response(response, self.destination)
        return self._location(response)

    def blob(self, digest: str, size: int, pieces: Callable[[int, int], Iterable[bytes]], on_sent: OnSent) -> None:
        """Upload a blob unless the registry has it: chunk by chunk, and resumed where a chunk was cut."""
        if self.request("HEAD", f"{self.root}/v2/{self.name}/blobs/{digest}").status == 200:
            on_sent(size)
            return
        response = self.request("POST", f"{self.root}/v2/{self.name}/blobs/uploads/")
        http_client.check_response(response, self.destination)
        min_length = response.headers.get("oci-chunk-min-length", "")
        chunk = max(CHUNK, int(min_length) if min_length.isdecimal() and len(min_length) < 12 else 0)
        url, at, resumed = self._location(response), 0, 0
        while at < size:
            end = min(at + chunk, size)
            accepted = self._chunk(url, partial(pieces, at, end), at, end, on_sent)
            if accepted is not None:
                url, at = self._location(accepted, url), end
                continue
            resumed += 1
            if resumed > MAX_RESUMED:
                raise failed("silent", host=self.host, error="cut", again=True)
            url, at = self._resumed(url, size)
        end_of = f"{url}{'&' if '?' in url else '?'}{urlencode({'digest': digest})}"
        response = self.request("PUT", end_of, {"Content-Type": "application/octet-stream"})
        if response.status in (400, 416) and (b"DIGEST" in response.body or b"SIZE" in response.body):
            raise failed("checksum", host=self.host, again=True)
        http_client.check_response(response, self.destination)

    def _chunk(self, url: str, body: Body, begin: int, end: int, on_sent: OnSent) -> http_client.Response | None:
        """Send a part of a blob; None where it was cut, or the registry requires another part."""
        headers = {"Content-Type": "application/octet-stream", "Content-Range": f"{begin}-{end - 1}"}
        try:
            response = self.request("PATCH", url, headers, body, end - begin, on_sent)
        except PushFailed as exc:
            if not exc.again:
                raise
            return None
        return None if response.status == 416 else http_client.check_response(response, self.destination)

    def _resumed(self, url: str, size: int) -> tuple[str, int]:
        """Return where to resume: the address and the first missing byte."""
        response = self.request("GET", url)
        http_client.check_response(response, self.destination)
        last = re.match(r"(?:bytes=)?0-(\d{1,15})\Z", response.headers.get("range", ""))
        return self._location(response, url), min(int(last.group(1)) + 1, size) if last else 0

    def manifest(self, tag: str, text: bytes) -> str:
        """Put a manifest under a tag and return its digest."""
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        url = f"{self.root}/v2/{self.name}/manifests/{tag}"
        response = http_client.check_response(
            self.request("PUT", url, {"Content-Type": MANIFEST}, lambda: [text], len(text)), self.destination
        )
        if response.headers.get("docker-content-digest", digest) != digest:
            raise failed("checksum", host=self.host, again=True)
        return digest

    def request(
        self, method: str, url: str, headers: dict[str, str] | None = None, body: Body = lambda: (), length: int = 0,
        on_sent: OnSent = lambda _count: None,
    ) -> http_client.Response:  # fmt: skip
        """Send one request, with credentials where the registry requires them; an expired token is replaced."""
        for again in (False, True):
            sent = {"Accept": MANIFEST, **self.proof, **(headers or {})}
            response = http_client.request(
                self.destination, method, url, sent, body=body(), length=length, on_sent=on_sent
            )
            if response.status != 401 or again:
                break
            self.proof = self._authorize(response.headers.get("www-authenticate", ""))
        if response.status in (401, 403):
            raise failed("credentials", host=self.host, status=response.status)
        return response

    def _location(self, response: http_client.Response, default: str = "") -> str:
        """Return where an upload continues. Credentials are never sent to another host."""
        url = urljoin(f"{self.root}/", response.headers.get("location", default))
        if urlsplit(url).netloc != self.netloc or f"{urlsplit(url).scheme}://" not in self.root:
            raise failed("redirected", host=self.host, other=http_client.host_of(url))
        return url

    def _authorize(self, challenge: str) -> dict[str, str]:
        scheme, challenge_params = parse_challenge(challenge)
        username = self.destination.option("username")
        encoded = base64.b64encode(f"{username}:{self.destination.secret}".encode()).decode()
        basic = {"Authorization": f"Basic {encoded}"} if username else {}
        if scheme == "basic" and basic:
            return basic
        if scheme != "bearer":
            raise failed("credentials", host=self.host, status=401)
        realm = challenge_params.get("realm", "")
        if not (realm.startswith("https://") or realm.startswith(f"{self.root}/")):
            raise failed("redirected", host=self.host, other=http_client.host_of(realm))  # a password in the open
        query = {"service": challenge_params.get("service", ""), "scope": f"repository:{self.name}:pull,push"}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        response = http_client.request(self.destination, "GET", url, basic)
        if response.status in (400, 401, 403):
            raise failed("credentials", host=self.host, status=response.status)
        http_client.check_response(response, self.destination)
        try:
            payload = json.loads(response.body[:MAX_TOKEN_BYTES])
            token = str(payload.get("token") or payload["access_token"])
            if not (token.isascii() and token.isprintable()):
                raise ValueError
        except (ValueError, KeyError, AttributeError) as exc:
            raise failed("answered", host=self.host, status=response.status, error="token") from exc
        return {"Authorization": f"Bearer {token}"}
