"""All virtual people and viewers of a run together, what they know of each other, and who looks after stuck jobs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.chaos import witness
from tests.chaos.crowd.dweller import Dweller
from tests.chaos.crowd.ledger import Ledger
from tests.chaos.crowd.person import Person
from tests.chaos.crowd.viewer import Viewer

CENSUS_S = 2.0
PAUSED_S, STUCK_S = 6.0, 20.0
GIVE_UP_S = 240.0


class Town:
    """`told` is what the run prepared: address, ledger, people, watchers' tokens, how many look at logs."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.url, self.told = str(told["url"]), told
        self.think_s, self.in_flight = float(told["think_s"]), int(told["in_flight"])
        self.long_s = float(told["long_s"])
        self.ledger = Ledger(Path(told["ledger"]))
        self.evening, self.given_up = asyncio.Event(), asyncio.Event()
        self.reconnects, self.answers = 0, Counter[int]()
        self._live: dict[int, dict[str, Any]] = {}
        self._first_seen: dict[tuple[int, str], float] = {}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(witness.__file__, "witness.py")
        self.archive = packed.getvalue()

    async def live(self) -> None:
        """Until `evening` is set; then everybody brings to its end what is begun."""
        seed = int(self.told["seed"])
        people = [Person(self, given, seed + 10 + n) for n, given in enumerate(self.told["people"])]
        tokens = self.told["watchers"]
        viewers = [Viewer(self, n, tokens[n % len(tokens)], seed + 1000 + n) for n in range(int(self.told["viewers"]))]
        dwellers = [Dweller(self, given, seed + 2000 + n) for n, given in enumerate(self.told["dwellers"])]
        operator = Person(self, {"name": "operator", "token": tokens[0]}, seed)
        census = asyncio.create_task(self._take_census(operator))
        begun = [asyncio.create_task(one.live()) for one in (*people, *viewers, *dwellers)]
        await self.evening.wait()
        limit = asyncio.create_task(self._give_up())
        done = await asyncio.gather(*begun, return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                self.ledger.say("broke", text=repr(failure))
        while self._live and not self.given_up.is_set():
            await asyncio.sleep(0.5)
        limit.cancel()
        census.cancel()
        for one in (*people, *viewers, *dwellers, operator):
            await one.call.close()
        self.ledger.say("rest", answers={str(k): v for k, v in self.answers.items()}, reconnects=self.reconnects)

    async def until_evening(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.evening.wait(), seconds)

    def count(self, status: int) -> None:
        self.answers[status] += 1

    def has_room(self) -> bool:
        return len(self._live) < self.in_flight

    def one_of(self, name: str, rng: random.Random) -> dict[str, Any] | None:
        mine = [row for row in self._live.values() if row["owner"] == name]
        return rng.choice(mine) if mine else None

    def one_to_watch(self, rng: random.Random) -> dict[str, Any] | None:
        """A job that runs, by preference one that has run for a while and so may run on."""
        runs = [row for row in self._live.values() if row["state"] == "running"]
        old = [row for row in runs if time.monotonic() - self._first_seen[row["id"], "live"] > 8]
        return rng.choice(old or runs) if runs else None

    async def _give_up(self) -> None:
        await asyncio.sleep(GIVE_UP_S)  # pause: the end of all patience
        self.given_up.set()

    async def _take_census(self, operator: Person) -> None:
        """Know who runs; continue what stays paused, stop what can end no other way."""
        acts: dict[int, asyncio.Task[None]] = {}
        while True:
            answer = await operator.call.ask("GET", "/api/v1/jobs/?state=live&limit=200")
            if answer.ok:
                rows = {row["id"]: row for row in answer.json()["results"]}
                self._live = rows
                for number, row in rows.items():
                    if row["state"] == "queued" and row["desired"] == "pause":
                        row["state"] = "paused"  # its supervisor was killed meanwhile: it waits for its owner
                    for mark in ("live", row["state"]):
                        self._first_seen.setdefault((number, mark), time.monotonic())
                for number, verb in self._overdue():
                    if number not in acts or acts[number].done():
                        acts[number] = asyncio.create_task(operator.press(number, verb))
                        self._first_seen.pop((number, "paused"), None)
            await asyncio.sleep(CENSUS_S)

    def _overdue(self) -> list[tuple[int, str]]:
        found, moment = [], time.monotonic()
        for number, row in self._live.items():
            stuck = row["name"].partition("_")[0] in witness.STUCK
            if stuck and row["state"] in {"running", "paused"}:
                if moment - self._first_seen.get((number, "running"), moment) > STUCK_S:
                    found.append((number, "stop"))
            elif row["state"] == "paused" and moment - self._first_seen[number, "paused"] > PAUSED_S:
                found.append((number, "continue"))
        return found
