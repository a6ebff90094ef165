"""Resumable uploads (tus 1.0): create, query the offset, send the rest in chunks.

A small state file remembers where each unfinished file goes, so an upload that was killed
goes on where it stopped when the same command runs again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from aiplatform.client import config, output
from aiplatform.client.errors import ClientError
from aiplatform.client.http import Client
from aiplatform.client.packing import Sent

ENTRY = "/uploads/tus/"
CHUNK = 8 << 20  # bytes in one PATCH
TRIES = 6  # sends of one chunk before giving up; the pauses between them double from 1 s
VERSION = {"Tus-Resumable": "1.0.0"}


def _state_file() -> Path:
    return config.folder() / "uploads.json"


def _states() -> dict[str, str]:
    try:
        states = json.loads(_state_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return states if isinstance(states, dict) else {}


def _remember(key: str, where: str | None) -> None:
    states = _states()
    if where is None:
        states.pop(key, None)
    else:
        states[key] = where
    config.folder().mkdir(parents=True, exist_ok=True, mode=0o700)
    new = _state_file().with_suffix(".new")
    new.write_text(json.dumps(states), encoding="utf-8")
    new.replace(_state_file())


def _create(client: Client, size: int, name: str) -> str:
    encoded = base64.b64encode(name.encode()).decode()
    answer = client.open(
        "POST",
        ENTRY,
        data=b"",
        headers={
            **VERSION,
            "Upload-Length": str(size),
            "Upload-Metadata": f"filename {encoded}",
        },
    )
    answer.close()
    where = urlsplit(answer.headers.get("location", "")).path
    if not where:
        raise ClientError("The platform accepted the upload but returned no address for it.")
    return where


def _offset(client: Client, where: str) -> int:
    answer = client.open("HEAD", where, headers=VERSION)
    answer.close()
    return int(answer.headers.get("upload-offset", "0"))


def _send(client: Client, where: str, offset: int, chunk: bytes) -> int:
    digest = base64.b64encode(hashlib.sha1(chunk, usedforsecurity=False).digest()).decode()
    answer = client.open(
        "PATCH",
        where,
        data=chunk,
        headers={
            **VERSION,
            "Upload-Offset": str(offset),
            "Upload-Checksum": f"sha1 {digest}",
            "Content-Type": "application/offset+octet-stream",
        },
    )
    answer.close()
    return int(answer.headers["upload-offset"])


class Progress:
    """One line on stderr that is rewritten in place; silent without a terminal."""

    def __init__(self, name: str, total: int, *, quiet: bool) -> None:
        self.name, self.total = output.clean(name), total
        self.shown = not quiet and sys.stderr.isatty()
        self.began: tuple[float, int] | None = None

    def show(self, done: int) -> None:
        now = time.monotonic()
        if self.began is None:
            self.began = (now, done)
        if not self.shown:
            return
        seconds = now - self.began[0]
        rate = (done - self.began[1]) / seconds if seconds > 0.2 else 0.0
        left = f", {output.duration((self.total - done) / rate)} left" if rate else ""
        percent = 100 * done / self.total if self.total else 100.0
        line = f"{self.name}  {percent:.0f} %  {output.size(done)} of {output.size(self.total)}"
        line += f"  {output.size(rate)}/s{left}" if rate else ""
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.shown:
            print(file=sys.stderr)


def upload(
    client: Client,
    source: Path | Sent,
    *,
    name: str | None = None,
    quiet: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Send one file, or what is packed on the way, and return the id of the finished upload.

    Args:
        name: what the platform shall call it; its own name when None.
        quiet: no progress line.
        pause: waits between tries, in seconds.

    Raises:
        ClientError: the file is missing, the platform refuses, or the connection stays away.
    """
    sent = Sent(source) if isinstance(source, Path) else source
    key = f"{client.config.url}|{sent.key}"
    where = _states().get(key)
    offset = 0
    if where is not None:
        try:
            offset = _offset(client, where)
        except ClientError as exc:
            if exc.status not in (403, 404, 410):
                raise
            where = None  # expired or removed there
    if where is None:
        where = _create(client, sent.size, name or sent.name)
        offset = 0
        _remember(key, where)
    elif offset and not quiet:
        output.say(f"Resuming at {output.size(offset)}.")
    progress = Progress(sent.name, sent.size, quiet=quiet)
    progress.show(offset)
    tries = 0
    try:
        while offset < sent.size:
            chunk = sent.read(offset, CHUNK)
            try:
                offset = _send(client, where, offset, chunk)
                tries = 0
            except ClientError as exc:
                tries += 1
                if tries >= TRIES or exc.status not in (0, 409, 423, 460, 500, 502, 503, 504):
                    raise
                pause(2.0 ** (tries - 1))
                offset = _where_now(client, where, offset)
            progress.show(offset)
    finally:
        progress.end()
    _remember(key, None)
    return where.rstrip("/").rsplit("/", 1)[-1]


def _where_now(client: Client, where: str, offset: int) -> int:
    """Query the upload's offset; while the platform does not answer, return the last known one."""
    try:
        return _offset(client, where)
    except ClientError as exc:
        if exc.status in (403, 404, 410):
            raise
        return offset
