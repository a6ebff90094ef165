"""A virtual person who lives in an environment: enters by browser and by SSH, writes, pauses, saves it as an image."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import uuid
from typing import TYPE_CHECKING, Any

import asyncssh
from yarl import URL

from tests.chaos.crowd.caller import Answer
from tests.chaos.crowd.person import Person

if TYPE_CHECKING:
    from tests.chaos.crowd.town import Town

FINAL = frozenset({"succeeded", "finished_early", "failed", "stopped", "lost"})
ENTER_S = 90.0  # at most between the last strike and both ways in
MAX_IMAGES = 3
NOTE_BYTES = 200_000
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Dweller:
    """`given`: name, token, number of the image with the stand-in, private key for SSH."""

    def __init__(self, town: Town, given: dict[str, Any], seed: int) -> None:
        self.town, self.given, self.rng = town, given, random.Random(seed)
        self.person = Person(town, given, seed)
        self.call = self.person.call
        self.key = asyncssh.import_private_key(given["ssh_key"])
        self.link: asyncssh.SSHClientConnection | None = None
        self.images: list[int] = []

    async def live(self) -> None:
        """One environment after another until the evening; each is left in order."""
        await asyncio.sleep(self.rng.uniform(0, self.town.think_s))  # pause: somebody thinks
        await self.person.sign_in()
        while not self.town.evening.is_set():
            job = await self.move_in()
            if job:
                await self.dwell(job)
                await self.move_out(job)
            await self.town.until_evening(1)
        for number in self.images:
            row = await self._until(f"/api/v1/images/{number}/", {"ready", "failed"})
            self._say("image", image=number, state=row.get("state", "unknown"), text=row.get("message", ""))

    async def move_in(self) -> int:
        """Ask for an environment and wait until it answers; 0 where none came about."""
        name = f"lodging_{uuid.uuid4().hex}"
        self._say("lodge", name=name)
        asked = {"name": name, "image": self.given["image"], "cpus": 0.25, "memory_mib": 256}
        answer = await self.call.insist("POST", "/api/v1/environments/", once=True, json=asked)
        job = answer.json().get("id", 0) if answer.ok else 0
        self._say("lodged", name=name, status=answer.status, job=job, text=answer.body[:300].decode(errors="replace"))
        return int(job)

    async def dwell(self, job: int) -> None:
        """Do what people do in it, until it is over or the evening comes."""
        acts = [self.look, self.look_by_ssh, self.write, self.pause, self.save]
        while not self.town.evening.is_set() and not await self._is_over(job):
            await self.rng.choices(acts, [6, 5, 4, 1, 0.7])[0](job)
            await self.town.until_evening(self.rng.uniform(0.2, 1.5))

    async def move_out(self, job: int) -> None:
        """See that both ways in are open again, whatever was killed, then stop it."""
        deadline = asyncio.get_running_loop().time() + ENTER_S
        missing = {"browser": self.look, "ssh": self.look_by_ssh}
        while missing and not await self._is_over(job) and not self.town.given_up.is_set():
            for way, look in list(missing.items()):
                if await look(job):
                    del missing[way]
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.5)
        if missing and not await self._is_over(job):
            self._say("shut_out", job=job, ways=sorted(missing))
        await self.tell_notes(job)
        if self.link is not None:
            self.link.abort()
            self.link = None
        await self.person.press(job, "stop")
        while not await self._is_over(job) and not self.town.given_up.is_set():
            await asyncio.sleep(0.5)

    async def look(self, job: int) -> bool:
        """Ask JupyterLab who it is, in the browser that is in already."""
        answer = await self._lab("GET", job, "api/mine")
        row = answer.json()
        if answer.ok and "mine" in row:
            self._say("kernel", job=job, attempt=row["attempt"], mine=row["mine"], way="browser")
            return True
        return False

    async def look_by_ssh(self, job: int) -> bool:
        """Read the same word over SSH, on the connection that stands or on a new one."""
        try:
            async with asyncio.timeout(15):
                if self.link is None:
                    self.link = await asyncssh.connect(
                        "127.0.0.1", self.town.told["ssh_port"], username=f"job-{job}", client_keys=[self.key],
                        known_hosts=None, config=None, agent_path=None,
                    )  # fmt: skip
                done = await self.link.run("cat $TMPDIR/mine; echo; echo $AIP_ATTEMPT", check=False)
        except (OSError, asyncssh.Error, TimeoutError):
            if self.link is not None:
                self.link.abort()
                self.link = None
            return False
        words = str(done.stdout).split()
        if done.exit_status == 0 and len(words) == 2:
            self._say("kernel", job=job, attempt=int(words[1]), mine=words[0], way="ssh")
            return True
        return False

    async def write(self, job: int) -> None:
        """Write a note into what JupyterLab was installed in, as pip does."""
        answer = await self._lab("POST", job, "api/notes", headers={"X-Size": str(NOTE_BYTES)})
        if answer.ok and (name := answer.json().get("note")):
            self._say("note", job=job, note=name)

    async def tell_notes(self, job: int) -> None:
        answer = await self._lab("GET", job, "api/notes")
        if answer.ok:
            self._say("notes", job=job, **answer.json())

    async def pause(self, job: int) -> None:
        """Let its processes stand still for a moment."""
        await self.person.press(job, "pause")
        await self.town.until_evening(self.rng.uniform(0.5, 3))
        await self.person.press(job, "continue")

    async def save(self, job: int) -> None:
        """Save it as an image in the middle of everything."""
        if len(self.images) >= MAX_IMAGES:
            return
        await self.tell_notes(job)
        asked = {"job": job, "name": f"saved{uuid.uuid4().hex[:12]}"}
        answer = await self.call.insist("POST", "/api/v1/images/save/", once=True, json=asked)
        if answer.ok:
            self.images.append(answer.json()["id"])

    async def _lab(self, method: str, job: int, path: str, **sent: Any) -> Answer:
        """A request to JupyterLab by the cookie of its port; entered first where the browser is not in yet."""
        base = f"{self.town.told['ports_url']}/jobs/{job}/jupyter/"
        names = {cookie.key for cookie in self.call.browser.cookie_jar if cookie["path"].startswith(URL(base).path)}
        if f"aip-port-{job}-jupyter" not in names and not await self._enter(job):
            return Answer(0)
        headers = {"Origin": self.town.told["ports_url"], **sent.pop("headers", {})}
        answer = await self.call.ask(method, base + path, page=True, headers=headers, timeout_s=20, **sent)
        if answer.status in {401, 403}:
            self.town.ledger.say("error", by=self.call.name, status=answer.status, asked=f"{method} {path}", text="out")
        return answer

    async def _enter(self, job: int) -> bool:
        """Press *Open JupyterLab* on the page of the job, and follow where it leads."""
        page = await self.call.ask("GET", f"/jobs/{job}/", page=True)
        found = _TOKEN.search(page.body.decode(errors="replace"))
        if not found:
            return False
        headers = {"Referer": f"{self.town.url}/jobs/{job}/"}
        fields = {"csrfmiddlewaretoken": found[1]}
        path = f"/jobs/{job}/ports/jupyter/open/"
        opened = await self.call.ask("POST", path, page=True, data=fields, headers=headers)
        there = opened.headers.get("refresh", "").partition("url=")[2]
        entered = await self.call.ask("GET", there, page=True) if there else Answer(0)
        return entered.status == 303

    async def _is_over(self, job: int) -> bool:
        return (await self.call.ask("GET", f"/api/v1/jobs/{job}/")).json().get("state") in FINAL

    async def _until(self, path: str, states: set[str]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        while row.get("state") not in states and not self.town.given_up.is_set():
            with contextlib.suppress(TypeError):
                row = (await self.call.ask("GET", path)).json()
            await asyncio.sleep(0.5)
        return row

    def _say(self, kind: str, **facts: Any) -> None:
        self.town.ledger.say(kind, by=self.call.name, **facts)
