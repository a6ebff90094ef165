"""Secrets in rows: encrypted with a key made of the platform's secret key, so that a copy of the database is no use.

Fernet (https://github.com/fernet/spec): AES-128-CBC with an HMAC. The key comes from HKDF-SHA256 (RFC 5869).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unsealable(Exception):
    """The text was sealed with another secret key, or is damaged."""


def seal(values: Mapping[str, str]) -> str:
    """Return named secrets as one unreadable text; "" for none."""
    return _fernet(settings.SECRET_KEY).encrypt(json.dumps(dict(values)).encode()).decode() if values else ""


def unseal(sealed: str) -> dict[str, str]:
    """What `seal` took.

    Raises:
        Unsealable: see there.
    """
    if not sealed:
        return {}
    try:
        values: dict[str, str] = json.loads(_fernet(settings.SECRET_KEY).decrypt(sealed.encode()))
    except InvalidToken as exc:
        raise Unsealable from exc
    return values


@cache
def _fernet(secret_key: str) -> Fernet:
    key = HKDF(SHA256(), 32, salt=None, info=b"aiplatform secrets in rows").derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(key))
