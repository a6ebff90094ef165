"""Bringing in data sets by resumable upload, and what a COCO file holds."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import random
import uuid
import zipfile
from typing import TYPE_CHECKING, Any

from PIL import Image

from tests.chaos.crowd.caller import AGAIN, Caller

if TYPE_CHECKING:
    from tests.chaos.crowd.town import Town

CHUNK = 64 << 10
SIDE = 96
TUS = {"Tus-Resumable": "1.0.0"}


def pictures(rng: random.Random) -> dict[str, bytes]:
    """A few pictures of noise, which no archive makes smaller."""
    found = {}
    for number in range(rng.randint(3, 8)):
        out = io.BytesIO()
        Image.frombytes("RGB", (SIDE, SIDE), rng.randbytes(SIDE * SIDE * 3)).save(out, "PNG")
        found[f"p{number}.png"] = out.getvalue()
    return found


async def bring_in(call: Caller, town: Town, rng: random.Random) -> None:
    """Send an archive in pieces, make a data set of it, and agree to the report about it."""
    made = pictures(rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in made.items():
            archive.writestr(name, content)
    name = f"up{uuid.uuid4().hex[:16]}"
    sums = sorted(hashlib.sha256(content).hexdigest() for content in made.values())
    town.ledger.say("upload", by=call.name, name=name, sums=sums)
    upload = await _send(call, town, out.getvalue())
    if upload is None:
        return
    asked = {"name": name, "intro": "noise", "upload": upload}
    answer = await call.insist("POST", "/api/v1/datasets/", once=True, json=asked)
    said = "" if answer.ok else answer.body[:200].decode(errors="replace")
    if answer.ok:
        await _agree(call, town, f"/api/v1/datasets/{answer.json()['id']}/imports/")
    town.ledger.say("uploaded", by=call.name, name=name, status=answer.status, text=said)


async def _agree(call: Caller, town: Town, imports: str) -> None:
    """Wait for the report, agree to it, and wait until the import is over."""
    while not town.given_up.is_set():
        answer = await call.ask("GET", imports)
        row = next(iter(answer.json()["results"]), {}) if answer.ok else {}
        if row.get("state") == "checked":
            await call.ask("POST", f"{imports}{row['id']}/commit/")
        if row.get("state") in {"succeeded", "failed", "stopped"}:
            return
        await asyncio.sleep(1.5)


async def _send(call: Caller, town: Town, data: bytes) -> str | None:
    """Send by tus: what the server has is asked for after each failure."""
    metadata = f"filename {base64.b64encode(b'noise.zip').decode()}"
    headers = {**TUS, "Upload-Length": str(len(data)), "Upload-Metadata": metadata}
    created = await call.insist("POST", "/uploads/tus/", headers=headers, data=b"")
    if created.status != 201:
        return None
    where, offset = created.headers["location"], 0
    while offset < len(data) and not town.given_up.is_set():
        chunk = data[offset : offset + CHUNK]
        digest = base64.b64encode(hashlib.sha1(chunk, usedforsecurity=False).digest()).decode()
        sent = {**TUS, "Upload-Offset": str(offset), "Upload-Checksum": f"sha1 {digest}"}
        answer = await call.ask(
            "PATCH", where, headers={**sent, "Content-Type": "application/offset+octet-stream"}, data=chunk
        )
        if answer.status == 204:
            offset = int(answer.headers["upload-offset"])
            await asyncio.sleep(0.2)  # a slow line, so that a cut finds it under way
            continue
        if answer.status not in AGAIN | {409, 460}:
            text = answer.body[:200].decode(errors="replace")
            town.ledger.say("error", by=call.name, status=answer.status, asked=f"PATCH {where}", text=text)
            return None
        await asyncio.sleep(1)
        asked = await call.ask("HEAD", where, headers=TUS)
        offset = int(asked.headers["upload-offset"]) if asked.status == 200 else offset
    return where.rstrip("/").rsplit("/", 1)[-1] if offset == len(data) else None


def facts_of_coco(content: bytes) -> dict[str, Any]:
    """The digest of a COCO file and how many boxes it holds; -1 where it is none."""
    try:
        boxes = len(json.loads(content)["annotations"])
    except (ValueError, KeyError):
        boxes = -1
    return {"file_sha256": hashlib.sha256(content).hexdigest(), "boxes": boxes}
