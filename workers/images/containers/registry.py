"""A container registry over HTTPS: the OCI distribution API, as far as taking images and signing in goes.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md . The platform asks registries itself, and the
container engine only gets what was found: so certificates, addresses, redirects and digests are checked here, one and
the same way for docker and podman, and no engine ever learns a password.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from aiplatform.lib import disk, wording
from aiplatform.lib.challenges import parse_challenge
from aiplatform.lib.errors import DomainError
from workers.execution.exec.allowed_hosts import AllowedHosts
from workers.execution.exec.egress import is_public
from workers.images.containers.patience import Patience

ANSWER_S = 30.0  # between two bytes
TOTAL_TIMEOUT_S = 45.0  # for an answer, with signing in and all redirects; less than who fetches holds his claim
PIECE_S = 30.0  # for each megabyte of a blob
SIGN_IN_S = 15.0  # somebody waits for the page
MAX_REDIRECTS = 5
MAX_MANIFEST_BYTES, MAX_TOKEN_BYTES = 4 << 20, 64 << 10
CHUNK = 1 << 20
INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_REDIRECTS = (301, 302, 303, 307, 308)


class RegistryRefused(DomainError, code="registry_refused"):
    """A registry refused a request; the message gives the reason and what to do."""


@dataclass(frozen=True)
class Login:
    """Credentials for a registry, and certificates that are trusted in addition to the node's own."""

    username: str = ""
    password: str = field(default="", repr=False)
    ca: str = ""


def refused(code: str, host: str, **facts: Any) -> RegistryRefused:
    """Return the refusal of a registry; the texts are in workers.images.messages."""
    return RegistryRefused(wording.message(f"image.registry_{code}", host=host, **facts))


class Registry:
    """One registry.

    Args:
        allowed: names of hosts, each perhaps with a *, that may be asked. One whose whole name is there may have an
            inner address: a registry of the house.
        resolve: finds the addresses of a host.
    """

    def __init__(
        self,
        host: str,
        login: Login,
        *,
        allowed: Sequence[str],
        resolve: Callable[[str, int], list[str]] | None = None,
    ) -> None:
        self.host, self.login, self.allowed = host, login, AllowedHosts(allowed)
        self.resolve = resolve or _resolve
        try:
            self._place = _place(urlsplit(f"https://{host}"))
        except ValueError as exc:
            raise refused("unknown", host) from exc
        self.trust = ssl.create_default_context()
        if login.ca:
            try:
                self.trust.load_verify_locations(cadata=login.ca)
            except (ssl.SSLError, ValueError, TypeError) as exc:  # TypeError: letters that are not ASCII
                raise refused("bad_ca", host) from exc
        self._proof: dict[str, str] = {}  # by scope: the value of Authorization

    def check(self) -> None:
        """See that it answers, and takes the credentials.

        Raises:
            RegistryRefused: with what to do.
        """
        with self._get("/v2/", scope="", patience=Patience(SIGN_IN_S)) as answer:
            answer.read(MAX_TOKEN_BYTES)

    def manifest(self, name: str, version: str) -> tuple[str, bytes]:
        """The digest and the bytes of a manifest, or of an index of manifests.

        Raises:
            RegistryRefused: it has none, or gives another one than was asked for.
        """
        accept = ", ".join((*INDEXES, *MANIFESTS))
        with self._get(f"/v2/{name}/manifests/{version}", scope=name, accept=accept) as answer:
            text = answer.read(MAX_MANIFEST_BYTES + 1)
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        if len(text) > MAX_MANIFEST_BYTES or (version.startswith("sha256:") and digest != version):
            raise refused("checksum", self.host, what=version)
        return digest, text

    def blob(self, name: str, digest: str, size: int, into: BinaryIO, alive: Callable[[int], object]) -> None:
        """Write a blob into a file, checked by its digest and its size.

        Args:
            alive: called with the bytes of each piece.

        Raises:
            RegistryRefused: it is not there, or another than was asked for.
        """
        checksum, left, patience = hashlib.sha256(), size, Patience(TOTAL_TIMEOUT_S)
        with self._get(f"/v2/{name}/blobs/{digest}", scope=name, patience=patience) as answer:
            patience.extend(PIECE_S)
            while piece := answer.read(min(CHUNK, left + 1)):
                left -= len(piece)
                if left < 0:
                    break
                checksum.update(piece)
                into.write(piece)
                alive(len(piece))
                patience.extend(PIECE_S)
        if left or f"sha256:{checksum.hexdigest()}" != digest:
            raise refused("checksum", self.host, what=digest)

    @contextmanager
    def _get(
        self, path: str, *, scope: str, accept: str = "*/*", patience: Patience | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Request a path, signed in where required; redirects are followed, never with our credentials."""
        url = f"https://{self.host}{path}"
        with patience or Patience(TOTAL_TIMEOUT_S) as patience:
            try:
                for again in (False, True):
                    with self._followed(url, self._proof.get(scope, ""), accept, patience) as (answer, other):
                        unproven = answer.status == http.HTTPStatus.UNAUTHORIZED
                        if unproven and other:
                            raise refused("stranger", self.host, other=other)
                        if unproven and not again:
                            challenges = answer.headers.get_all("WWW-Authenticate") or []
                            self._proof[scope] = self._signed_in(challenges, scope, patience)
                            continue
                        self._check_status(answer.status, path)
                        yield answer
                        break
            except RegistryRefused as exc:
                if patience.over:
                    raise refused("slow", self.host) from exc
                raise
            if patience.over:  # what came is cut short
                raise refused("slow", self.host)

    def _check_status(self, status: int, path: str) -> None:
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise refused("credentials" if self.login.username else "sign_in", self.host)
        if status == http.HTTPStatus.NOT_FOUND:
            raise refused("not_found", self.host, what=path.removeprefix("/v2/").replace("/manifests/", ":")[:200])
        if status == http.HTTPStatus.TOO_MANY_REQUESTS:
            raise refused("too_many", self.host)
        if status != http.HTTPStatus.OK:
            raise refused("answered", self.host, status=status)

    @contextmanager
    def _followed(
        self, url: str, proof: str, accept: str, patience: Patience
    ) -> Iterator[tuple[http.client.HTTPResponse, str]]:
        """The answer at the end of all redirects, and the host that gave it; "" where that is the registry itself."""
        for _step in range(MAX_REDIRECTS + 1):
            parts = self._split(url)
            own = _place(parts) == self._place
            headers = {"Accept": accept, "User-Agent": "aiplatform"}
            if proof and own:
                headers["Authorization"] = proof
            with self._response(parts, headers, patience) as answer:
                if answer.status not in _REDIRECTS or not answer.headers.get("Location"):
                    yield answer, "" if own else _place(parts)[0]
                    return
                try:
                    url = urljoin(url, answer.headers["Location"])
                except ValueError as exc:
                    raise refused("insecure", self.host) from exc
        raise refused("answered", self.host, status=310)

    def _split(self, url: str) -> SplitResult:
        """Split the URL of a redirect or of a token service.

        Raises:
            RegistryRefused: it is no address that is followed.
        """
        try:
            parts = urlsplit(url)
            _place(parts)
        except ValueError as exc:
            raise refused("insecure", self.host) from exc
        if parts.scheme != "https" or not parts.hostname or parts.username or not url.isascii():
            raise refused("insecure", self.host)
        return parts

    @contextmanager
    def _response(
        self, parts: SplitResult, headers: dict[str, str], patience: Patience
    ) -> Iterator[http.client.HTTPResponse]:
        """Send one request to one host and yield its response."""
        host, port = _place(parts)
        connection = self._connected(host, port, patience)
        try:
            connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), headers=headers)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as exc:
            if disk.is_full(exc):
                raise
            raise refused("silent", host, error=str(exc) or type(exc).__name__) from exc
        finally:
            connection.close()

    def _signed_in(self, challenges: list[str], scope: str, patience: Patience) -> str:
        """What to say of ourselves to the registry, which asks for it; "" where we have nothing to say."""
        for challenge in challenges:
            scheme, params = parse_challenge(challenge)
            if scheme == "basic" and self.login.username:
                return self._basic()
            if scheme == "bearer":
                return f"Bearer {self._token(params, scope, patience)}"
        return ""

    def _token(self, challenge: dict[str, str], scope: str, patience: Patience) -> str:
        """Request a token from the service that the registry names; redirects from there are not followed."""
        query = {"service": challenge.get("service", "")} | ({"scope": f"repository:{scope}:pull"} if scope else {})
        if self.login.username:
            query["account"] = self.login.username
        realm = challenge.get("realm", "")
        headers = {"Authorization": self._basic()} if self.login.username else {}
        parts = self._split(f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}")
        with self._response(parts, headers, patience) as answer:
            self._check_status(answer.status, "/v2/")
            try:
                body = json.loads(answer.read(MAX_TOKEN_BYTES))
                token = str(body.get("token") or body["access_token"])
                if not (token.isascii() and token.isprintable()):  # it goes into a header
                    raise ValueError
                return token
            except (ValueError, KeyError, AttributeError) as exc:
                raise refused("answered", self.host, status=answer.status) from exc

    def _basic(self) -> str:
        both = f"{self.login.username}:{self.login.password}".encode()
        return f"Basic {base64.b64encode(both).decode()}"

    def _connected(self, host: str, port: int, patience: Patience) -> http.client.HTTPSConnection:
        """Connect to the address that was looked at, under the name that the certificate has to bear."""
        name = host.lower().rstrip(".")
        if not self.allowed.allow(name, port):
            raise refused("not_allowed", name)
        try:
            addresses = self.resolve(name, port)
        except (OSError, UnicodeError) as exc:
            raise refused("unknown", name) from exc
        if not addresses or not (self.allowed.has_name(name, port) or all(map(is_public, addresses))):
            raise refused("inner", name)
        connection = http.client.HTTPSConnection(name, port, timeout=ANSWER_S, context=self.trust)
        try:
            plain = socket.create_connection((addresses[0], port), timeout=min(ANSWER_S, patience.left_s))
            channel = self.trust.wrap_socket(plain, server_hostname=name, do_handshake_on_connect=False)
            connection.sock = channel
            patience.watch(channel)
            channel.do_handshake()
        except ssl.SSLCertVerificationError as exc:
            connection.close()
            raise refused("certificate", name, error=exc.verify_message) from exc
        except OSError as exc:
            connection.close()
            raise refused("silent", name, error=str(exc) or type(exc).__name__) from exc
        return connection


def _place(parts: SplitResult) -> tuple[str, int]:
    """The host and the port of an address.

    Raises:
        ValueError: its port is none.
    """
    return parts.hostname or "", parts.port or 443


def _resolve(host: str, port: int) -> list[str]:
    return [str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
