"""Download to a file; interrupted downloads are resumed."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from pathlib import Path

from aiplatform.client.errors import ClientError
from aiplatform.client.http import Answer, Client
from aiplatform.client.tus import Progress

BLOCK = 1 << 20


def fetch(
    client: Client,
    route: str,
    target: Path,
    *,
    query: Mapping[str, object] | None = None,
    quiet: bool = False,
) -> None:
    """Write the answer of `route` to `target`, atomically and resumably.

    Bytes arrive in `target` + ".part" and get the final name once all are there. Where the
    platform gave an ETag, a later call asks for the rest of that same version only.

    Raises:
        ClientError: refused, or the connection ended before the last byte.
    """
    part = target.with_name(target.name + ".part")
    tag = target.with_name(target.name + ".part.etag")
    answer, have = _open(client, route, query, part, tag)
    _remember(answer, tag)
    length = answer.headers.get("content-length")
    total = have + int(length) if length else 0
    progress = Progress(target.name, total, quiet=quiet or not total)
    try:
        with part.open("ab" if have else "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                have += len(block)
                progress.show(have)
    except (ConnectionError, TimeoutError, http.client.HTTPException) as exc:
        raise _cut(have) from exc
    finally:
        progress.end()
        answer.close()
    if length and have < total:
        raise _cut(have)
    part.replace(target)
    tag.unlink(missing_ok=True)


def _open(client: Client, route: str, query: Mapping[str, object] | None, part: Path, tag: Path) -> tuple[Answer, int]:
    """Request what is missing; the second value is how many bytes of it exist here."""
    everything = {"Accept": "*/*"}
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    if not have:
        return client.open("GET", route, query=query, headers=everything), 0
    rest = everything | {"Range": f"bytes={have}-", "If-Range": tag.read_text(encoding="utf-8")}
    try:
        answer = client.open("GET", route, query=query, headers=rest)
    except ClientError as exc:
        if exc.status != 416:
            raise
        return client.open("GET", route, query=query, headers=everything), 0
    return answer, have if answer.status == 206 else 0


def _remember(answer: Answer, tag: Path) -> None:
    """Store a strong ETag; weak ones do not promise the same bytes."""
    etag = answer.headers.get("etag", "")
    if etag.startswith('"'):
        tag.write_text(etag, encoding="utf-8")
    else:
        tag.unlink(missing_ok=True)


def _cut(have: int) -> ClientError:
    return ClientError(f"The connection was closed after {have} bytes; run it again to resume.")
