"""Host key of the SSH gateway: made once, kept in the data folder, so that clients know the gateway again."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
from pathlib import Path

from django.conf import settings

NAME = "ssh_host_ed25519_key"


def path() -> Path:
    """The private key; the public one is in the same folder."""
    return Path(settings.DATA_ROOT) / NAME


def public_line() -> str:
    """The public key as "ssh-ed25519 AAAA…"; "" before the gateway has begun for the first time."""
    try:
        return " ".join(path().with_suffix(".pub").read_text().split()[:2])
    except OSError:
        return ""


def fingerprint() -> str:
    """The public key as clients show it, "SHA256:…"; "" while there is none."""
    with contextlib.suppress(IndexError, binascii.Error):
        digest = hashlib.sha256(base64.b64decode(public_line().split()[1], validate=True)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    return ""


def store(private: bytes, public: bytes) -> None:
    """Write a new pair; a private key that is there stays, and counts."""
    part = path().with_suffix(f".{os.getpid()}")
    for name, content, mode in ((path(), private, 0o600), (path().with_suffix(".pub"), public, 0o644)):
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if name == path():
            with contextlib.suppress(FileExistsError):
                os.link(part, name)  # of two that begin at once the first wins
            part.unlink()
        else:
            part.replace(name)
