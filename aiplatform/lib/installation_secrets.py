"""Secrets that this installation generates: random, one per file, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def load_or_create(path: Path, *, size_bytes: int = 48) -> str:
    """Return the secret at `path`, making it on first use.

    Two processes that start together agree: the first to link the file wins.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(size_bytes))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
