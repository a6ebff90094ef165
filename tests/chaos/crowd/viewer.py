"""A viewer of logs: follows a job by WebSocket or by asking for pieces, and reads on where it was cut off."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.chaos.crowd.caller import Caller

if TYPE_CHECKING:
    from tests.chaos.crowd.town import Town

FINAL = frozenset({"succeeded", "finished_early", "failed", "stopped", "lost"})
MAX_BYTES = 8 << 20


class Reading:
    """The log of one attempt as one viewer has it."""

    def __init__(self) -> None:
        self.position = 0
        self.text = hashlib.sha256()

    def add(self, offset: int, next_offset: int, text: str) -> None:
        """Take a piece that begins where the last one ended; of an older piece, what is new of it."""
        raw = text.encode()
        skipped = self.position - offset
        if skipped >= len(raw) or len(raw) != next_offset - offset:
            return
        self.text.update(raw[skipped:])
        self.position = next_offset


class Viewer:
    """Watches one job after another."""

    def __init__(self, town: Town, number: int, token: str, seed: int) -> None:
        self.town, self.number, self.rng = town, number, random.Random(seed)
        self.by_socket = number % 4 != 0
        self.call = Caller(town.url, f"viewer{number}", token, town.ledger, self.rng, town.given_up)

    async def live(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, 5))  # pause: somebody thinks
        while not self.town.evening.is_set():
            row = self.town.one_to_watch(self.rng)
            if row is None:
                await self.town.until_evening(1)
                continue
            await self.watch(row["id"])
        await self.call.close()

    async def watch(self, job: int) -> None:
        """Follow a job to its end, then read what is missing and tell what was seen."""
        readings: dict[int, Reading] = {}
        while not self.town.given_up.is_set():
            over = await (self._by_socket(job, readings) if self.by_socket else self._by_pieces(job, readings))
            if over:
                break
            self.town.reconnects += 1
            await asyncio.sleep(self.rng.uniform(0.2, 2))
        for attempt in range(1, max(readings, default=0) + 1):
            whole = await self._rest(job, attempt, readings.setdefault(attempt, Reading()))
            read = readings[attempt]
            self.town.ledger.say(
                "view", viewer=self.number, job=job, attempt=attempt, size=read.position,
                sha256=read.text.hexdigest(), whole=whole,
            )  # fmt: skip

    async def _by_socket(self, job: int, readings: dict[int, Reading]) -> bool:
        """One connection; whether the job is over."""
        socket_url = self.town.url.replace("http", "ws", 1) + f"/ws/jobs/{job}/"
        sent: dict[int, int] = {}  # attempt → where this connection stands: the server may repeat nothing in it
        try:
            async with self.call.api.ws_connect(socket_url, max_msg_size=0, heartbeat=20) as line:
                async for message in line:
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        break
                    if await self._take(job, json.loads(message.data), readings, sent):
                        return True
                    if self.town.given_up.is_set():
                        return True
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass
        return await self._is_over(job, readings)

    async def _take(self, job: int, frame: dict[str, Any], readings: dict[int, Reading], sent: dict[int, int]) -> bool:
        if frame["type"] == "hello":
            if frame["attempt"]:
                readings.setdefault(frame["attempt"], Reading())
                sent[frame["attempt"]] = frame["size"]
            return frame["job"].get("state") in FINAL
        if frame["type"] == "log":
            attempt, offset = frame["attempt"], frame["offset"]
            reading = readings.setdefault(attempt, Reading())
            if offset < sent.get(attempt, 0):
                self.town.ledger.say("repeated", viewer=self.number, job=job, attempt=attempt, offset=offset)
            sent[attempt] = frame["next_offset"]
            if offset > reading.position:
                await self._rest(job, attempt, reading, until=offset)
            if offset <= reading.position:
                reading.add(offset, frame["next_offset"], frame["text"])
        return frame["type"] == "state" and frame["job"].get("state") in FINAL

    async def _by_pieces(self, job: int, readings: dict[int, Reading]) -> bool:
        while not self.town.given_up.is_set():
            attempt = max(readings, default=0)
            if attempt:
                await self._piece(job, attempt, readings[attempt])
            if await self._is_over(job, readings):
                return True
            await asyncio.sleep(self.rng.uniform(1, 3))
        return True

    async def _is_over(self, job: int, readings: dict[int, Reading]) -> bool:
        row = (await self.call.ask("GET", f"/api/v1/jobs/{job}/")).json()
        if row.get("attempt"):
            readings.setdefault(row["attempt"], Reading())
        return row.get("state") in FINAL

    async def _piece(self, job: int, attempt: int, reading: Reading) -> dict[str, Any] | None:
        path = f"/api/v1/jobs/{job}/log/?offset={reading.position}&attempt={attempt}"
        answer = await self.call.ask("GET", path)
        if not answer.ok:
            return None
        piece = answer.json()
        if piece["offset"] < reading.position:
            text = f"job {job} attempt {attempt}: {piece['size']} bytes, {reading.position} were read"
            self.town.ledger.say("shrunk", viewer=self.number, text=text)
            return None
        reading.add(piece["offset"], piece["next_offset"], piece["text"])
        return dict(piece)

    async def _rest(self, job: int, attempt: int, reading: Reading, until: int | None = None) -> bool:
        """Read on by offset: to `until`, or to the end of an attempt that is over; whether that was reached."""
        while not self.town.given_up.is_set() and reading.position < MAX_BYTES:
            if until is not None and reading.position >= until:
                return True
            piece = await self._piece(job, attempt, reading)
            if piece is None:
                await asyncio.sleep(self.rng.uniform(0.5, 1.5))
            elif piece["ended"] and piece["next_offset"] >= piece["size"]:
                return True
            elif piece["next_offset"] >= piece["size"]:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.town.given_up.wait(), 1)
        return False
