"""Address and token of the client: from the environment first, then from a private file."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from aiplatform.client.errors import USAGE, ClientError

DEFAULT_URL = "http://127.0.0.1:8000"


def folder() -> Path:
    """The client's own folder; `XDG_CONFIG_HOME` moves it."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "aiplatform"


def path() -> Path:
    return folder() / "config.json"


@dataclass(frozen=True)
class Config:
    """The platform's address without a trailing slash, and the token or an empty string."""

    url: str
    token: str


def _saved() -> dict[str, str]:
    try:
        saved = json.loads(path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise ClientError(f"{path()} cannot be read: {exc}. Delete it and sign in again.", USAGE) from exc
    if not isinstance(saved, dict):
        raise ClientError(f"{path()} is not a settings file. Delete it and sign in again.", USAGE)
    return {str(key): str(value) for key, value in saved.items()}


def load(url: str | None = None) -> Config:
    """Read the address and token.

    The order is: the `--url` option, `AIP_URL` and `AIP_TOKEN`, the saved file, this machine.
    A saved token is only ever sent to the address it was saved with.
    """
    saved = _saved()
    address = (url or os.environ.get("AIP_URL") or saved.get("url") or DEFAULT_URL).rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise ClientError(f"{address} is not a valid address: it must start with http:// or https://.", USAGE)
    token = os.environ.get("AIP_TOKEN") or ""
    if not token and saved.get("url") == address:
        token = saved.get("token", "")
    return Config(address, token)


def save(url: str, token: str) -> None:
    """Keep address and token in a file only its owner can read."""
    folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path().with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        if hasattr(os, "fchmod"):  # not on Windows, whose profiles are private
            os.fchmod(file.fileno(), 0o600)
        json.dump({"url": url, "token": token}, file)
    new.replace(path())


def forget() -> bool:
    """Remove the saved token; False when there was none."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True
