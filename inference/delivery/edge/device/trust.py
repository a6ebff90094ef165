"""Who may say what runs on a device: Ed25519 where `cryptography` is installed, else a secret of the device."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    Ed25519PublicKey = None  # type: ignore[assignment, misc]  # a device with nothing but Python

HAS_KEYS = Ed25519PublicKey is not None


class Refused(Exception):
    """What the server sent must not be used: a code for the server, and what exactly."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def check_keys(document: Mapping[str, Any], signatures: Mapping[str, str], trust: Mapping[str, Any]) -> None:
    """Refuse unless one of the trusted keys signed the document."""
    for name, signature in signatures.items():
        key = trust["keys"].get(name)
        if key and _signed(bytes.fromhex(key), bytes.fromhex(signature), canonical(document)):
            return
    raise Refused("bad_signature", "no key that this device trusts has signed it")


def _signed(key: bytes, signature: bytes, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def check_seal(document: Mapping[str, Any], sealed: str, secret: str) -> None:
    """Refuse unless the document is sealed with the secret of this device."""
    if not hmac.compare_digest(hmac.digest(bytes.fromhex(secret), canonical(document), "sha256").hex(), sealed):
        raise Refused("bad_signature", "it is not sealed with the secret of this device")
