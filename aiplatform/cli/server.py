"""What a node says to the platform's server before it is part of the cluster, and the folder both must see."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PROBES = ".join"
ANSWER_S = 60.0
"""How long a shared folder may take to show what another machine wrote."""


class Refused(Exception):
    """Why this machine is no node yet; the message says what to do."""


@contextlib.contextmanager
def probe(root: Path) -> Any:
    """Yield (path, content) of a temporary file with random content below the data root."""
    folder = root / PROBES
    folder.mkdir(exist_ok=True)
    file, content = folder / secrets.token_hex(16), secrets.token_hex(32)
    with file.open("w") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    try:
        yield file, content
    finally:
        file.unlink(missing_ok=True)
        file.with_suffix(".answer").unlink(missing_ok=True)


def see_answer(file: Path, content: str) -> None:
    """Wait until the server's answer shows here: the folder is shared both ways.

    Raises:
        Refused: it did not come in a minute.
    """
    wanted = hashlib.sha256(content.encode()).hexdigest()
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if file.with_suffix(".answer").read_text() == wanted:
                return
        time.sleep(0.1)
    raise Refused(f"changes of the server to {file.parent.parent} are not visible here; is it mounted read-only?")


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send JSON, return JSON.

    Raises:
        Refused: the server said no, or did not answer; with its sentence.
    """
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - given by the operator
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310 - given by the operator
            return dict(json.load(response))
    except urllib.error.HTTPError as exc:
        try:
            detail = str(json.load(exc)["detail"])
        except (ValueError, KeyError, TypeError):
            detail = f"{url} responded with {exc.code}"
        raise Refused(detail) from exc
    except (urllib.error.URLError, TimeoutError, ValueError) as exc:
        raise Refused(
            f"{url} does not respond ({getattr(exc, 'reason', exc)}). Check the address and the firewall."
        ) from exc
