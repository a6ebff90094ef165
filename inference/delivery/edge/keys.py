"""Keys that releases are signed with: Ed25519, one after the other, and a secret for devices without cryptography.

They lie in data root/edge/keys.json, which only the platform reads. A device trusts the key that was in use when it
was enrolled; each further key is named by a document that the one before signed, so devices follow a rotation.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from aiplatform.lib.files import write_json
from inference.delivery.edge.device.trust import canonical

Json = dict[str, Any]


def folder() -> Path:
    """Where keys and packages lie; made where it is not there."""
    path = Path(settings.DATA_ROOT) / "edge"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def trust() -> Json:
    """What a device that is enrolled now trusts."""
    seeds = _load()["seeds"]
    return _document(len(seeds), seeds[-1])


def signed(document: Mapping[str, Any], *, device: str) -> Json:
    """Return a release with its signature, its seal for one device, and the chain from every older key to this one."""
    content = _load()
    seeds = content["seeds"]
    successors = [_successor(number, seeds) for number in range(2, len(seeds) + 1)]
    return {
        "document": document,
        "signatures": _signature(len(seeds), seeds[-1], document),
        "sealed": hmac.digest(bytes.fromhex(_secret(content, device)), canonical(document), "sha256").hex(),
        "trust": successors,
    }


def secret_of(device: str) -> str:
    """The secret of a device without cryptography, in hex: the same each time."""
    return _secret(_load(), device)


def rotate() -> int:
    """Sign with a new key from now on and return its number."""
    with _locked() as path:
        content = json.loads(path.read_text())
        content["seeds"].append(secrets.token_hex(32))
        _write(path, content)
        return len(content["seeds"])


def _load() -> Json:
    path = folder() / "keys.json"
    try:
        content: Json = json.loads(path.read_text())
    except FileNotFoundError:
        with _locked() as path:
            content = json.loads(path.read_text())
    return content


@contextmanager
def _locked() -> Iterator[Path]:
    """Yield the path of the key file, created where missing and locked against other writers."""
    path = folder() / "keys.json"
    with (folder() / "keys.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _write(path, {"seeds": [secrets.token_hex(32)], "secret": secrets.token_hex(32)})
        yield path


def _write(path: Path, content: Json) -> None:
    write_json(path, content)
    path.chmod(0o600)


def _key(seed: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))


def _document(number: int, seed: str) -> Json:
    return {"version": number, "keys": {str(number): _key(seed).public_key().public_bytes_raw().hex()}}


def _signature(number: int, seed: str, document: Mapping[str, Any]) -> dict[str, str]:
    return {str(number): _key(seed).sign(canonical(document)).hex()}


def _successor(number: int, seeds: list[str]) -> Json:
    document = _document(number, seeds[number - 1])
    return {"document": document, "signatures": _signature(number - 1, seeds[number - 2], document)}


def _secret(content: Json, device: str) -> str:
    return hmac.digest(bytes.fromhex(content["secret"]), device.encode(), "sha256").hex()
