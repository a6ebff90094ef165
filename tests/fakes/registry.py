"""A small registry of container images over HTTPS, with a certificate of its own, in memory."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import secrets
import ssl
import tarfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(files: dict[str, bytes]) -> bytes:
    """A layer of these files, not compressed."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o755
            archive.addfile(about, io.BytesIO(content))
    return made.getvalue()


class FakeRegistry:
    """What it holds, and how it behaves."""

    def __init__(self) -> None:
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.users: dict[str, str] = {}  # name → password; with any, everything asks for a token
        self.basic = False  # instead of tokens
        self.redirect = ""  # where blobs lie
        self.drips = 0.0  # seconds between two bytes of an answer
        self.realm = ""  # who gives tokens; "": it does itself
        self.seen: list[tuple[str, str]] = []  # path, Authorization
        self.host = ""

    def put(self, name: str, tag: str, layers: list[bytes], **config: object) -> str:
        """Put an image; returns its digest."""
        packed = [gzip.compress(one, mtime=0) for one in layers]
        about = {"os": "linux", "architecture": "amd64", "created": "2026-01-02T03:04:05Z", "config": {}} | config
        about["rootfs"] = {"type": "layers", "diff_ids": [digest(one) for one in layers]}
        text = json.dumps(about).encode()
        for one in (text, *packed):
            self.blobs[digest(one)] = one
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": {"digest": digest(text), "size": len(text)},
            "layers": [{"digest": digest(one), "size": len(one)} for one in packed],
        }  # fmt: skip
        return self.keep(name, tag, MANIFEST, json.dumps(manifest).encode())

    def index(self, name: str, tag: str, by_architecture: dict[str, str]) -> str:
        """Put an index of images for several kinds of machines."""
        rows = [
            {"digest": one, "size": 1, "platform": {"os": "linux", "architecture": architecture}}
            for architecture, one in by_architecture.items()
        ]
        return self.keep(name, tag, INDEX, json.dumps({"mediaType": INDEX, "manifests": rows}).encode())

    def keep(self, name: str, tag: str, kind: str, text: bytes) -> str:
        for version in (tag, digest(text)):
            self.manifests[name, version] = (kind, text)
        return digest(text)


def handler(registry: FakeRegistry):
    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def say(self, status: int, data: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if not registry.drips:
                self.wfile.write(data)
                return
            with contextlib.suppress(OSError):  # who waited went away
                for place in range(len(data)):
                    self.wfile.write(data[place : place + 1])
                    time.sleep(registry.drips)

        def do_GET(self) -> None:
            proof = self.headers.get("Authorization", "")
            registry.seen.append((self.path, proof))
            parts = urlsplit(self.path)
            if parts.path == "/token":
                self.token(proof, parse_qs(parts.query))
            elif self.may(proof):
                self.give(parts.path)
            else:
                realm = f'realm="{registry.realm or f"https://{registry.host}/token"}",service="fake"'
                challenge = 'Basic realm="fake"' if registry.basic else f"Bearer {realm}"
                self.say(401, WWW_Authenticate=challenge)

        def may(self, proof: str) -> bool:
            if not registry.users:
                return True
            return self.known(proof) if registry.basic else proof == "Bearer good"

        def known(self, proof: str) -> bool:
            both = base64.b64decode(proof.removeprefix("Basic ") or b"").decode()
            name, _colon, password = both.partition(":")
            return bool(name) and registry.users.get(name) == password

        def token(self, proof: str, _asked: dict[str, list[str]]) -> None:
            if self.known(proof):
                self.say(200, json.dumps({"token": "good"}).encode())
            else:
                self.say(401)

        def give(self, path: str) -> None:
            match path.strip("/").split("/"):
                case ["v2"]:
                    self.say(200, b"{}")
                case ["v2", *name, "manifests", version] if ("/".join(name), version) in registry.manifests:
                    kind, text = registry.manifests["/".join(name), version]
                    self.say(200, text, Content_Type=kind)
                case ["v2", *_name, "blobs", one] if registry.redirect:
                    self.say(307, Location=f"{registry.redirect}/{one}")
                case ["v2", *_name, "blobs", one] if one in registry.blobs:
                    self.say(200, registry.blobs[one])
                case _:
                    self.say(404, b"{}")

    return Answers


def certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate of localhost, its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, secrets.token_hex(8))  # authorities are told apart by name
        ]
    )
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    own, ca = folder / "key.pem", folder / "ca.pem"
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    own.write_bytes(key.private_bytes(pem, plain, serialization.NoEncryption()))
    ca.write_bytes(made.public_bytes(pem))
    return own, ca


@contextmanager
def served(folder: Path):
    """A registry that answers; `host` is where, `ca` the authority of its certificate."""
    registry = FakeRegistry()
    own, ca = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca, own)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(registry)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        registry.host, registry.ca = f"localhost:{server.server_port}", ca.read_text()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield registry
        server.shutdown()
        thread.join()
