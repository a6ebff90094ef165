"""Requests of one virtual person: impatient, and stubborn where something must come true."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.chaos.crowd.ledger import Ledger

PATIENCE_S = 30.0
IMPATIENT = 0.08  # of all requests that are insisted on: cut after a moment, so that the answer is lost
AGAIN = frozenset({0, 408, 423, 425, 429, 500, 502, 503, 504})
BUSY_CODES = frozenset({"idempotency_in_progress", "already_converting", "not_ready"})


@dataclass
class Answer:
    """Status 0 means that none came."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        try:
            return json.loads(self.body) if self.body else {}
        except ValueError:
            return {}

    @property
    def code(self) -> str:
        body = self.json()
        return str(body.get("code", "")) if isinstance(body, dict) else ""


class Caller:
    """Someone with a token (API) and a cookie jar (pages). `over` is set when no new work shall begin."""

    def __init__(
        self, url: str, name: str, token: str, ledger: Ledger, rng: random.Random, given_up: asyncio.Event
    ) -> None:
        self.url, self.name, self.token, self.ledger, self.rng = url, name, token, ledger, rng
        self.given_up = given_up
        self.api = aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})
        self.browser = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def close(self) -> None:
        await self.api.close()
        await self.browser.close()

    async def ask(
        self, method: str, path: str, *, page: bool = False, timeout_s: float = PATIENCE_S, **sent: Any
    ) -> Answer:
        """One request, of the platform or of a whole address. What no server should ever say is put into the ledger."""
        session = self.browser if page else self.api
        url = path if path.startswith("http") else self.url + path
        try:
            async with session.request(
                method, url, timeout=aiohttp.ClientTimeout(total=timeout_s), allow_redirects=False, **sent
            ) as came:
                answer = Answer(came.status, await came.read(), {k.lower(): v for k, v in came.headers.items()})
        except (aiohttp.ClientError, OSError, TimeoutError):
            return Answer(0)
        if answer.status == 500 or (answer.status in {401, 403} and not page):
            text = answer.body[:300].decode(errors="replace")
            self.ledger.say("error", by=self.name, status=answer.status, asked=f"{method} {path}", text=text)
        return answer

    async def insist(self, method: str, path: str, *, once: bool = False, key: str = "", **sent: Any) -> Answer:
        """The same request again until it is answered for good, or until nobody waits any longer (status 0).

        Args:
            once: send an `Idempotency-Key`; `key` names it, else one is invented.
        """
        headers = dict(sent.pop("headers", {}))
        if once:
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        pause_s = 0.3
        while True:
            hurried = self.rng.random() < IMPATIENT
            data = sent.get("data")
            body = {**sent, "data": data()} if callable(data) else sent
            answer = await self.ask(
                method, path, headers=headers, timeout_s=self.rng.uniform(0.002, 0.3) if hurried else PATIENCE_S, **body
            )
            if answer.status not in AGAIN and answer.code not in BUSY_CODES:
                return answer
            if self.given_up.is_set():
                return Answer(0, answer.body)
            await asyncio.sleep(self.rng.uniform(0.5, 1) * pause_s)
            pause_s = min(pause_s * 1.6, 5.0)
