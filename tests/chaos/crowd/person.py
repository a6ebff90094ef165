"""A virtual person: signs in, looks round, submits and steers jobs, draws boxes, uploads, exports."""

from __future__ import annotations

import asyncio
import io
import random
import re
import uuid
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.chaos.crowd import uploading
from tests.chaos.crowd.caller import Caller

if TYPE_CHECKING:
    from tests.chaos.crowd.town import Town

PAGES = ("/", "/datasets/", "/training/", "/annotation/", "/queue/", "/cluster/", "/notifications/", "/models/")
HABITS = ("good",) * 14 + ("deaf", "deaf", "daemons", "flood", "still", "tracer")
LONG = 0.25  # of all jobs; viewers like to watch these
PASSWORD = "correct horse"  # of tests/factories/people.py
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Person:
    """`given` is what the run prepared: name, token, version, code, and for some a set to annotate."""

    def __init__(self, town: Town, given: dict[str, Any], seed: int) -> None:
        self.town, self.given, self.name = town, given, str(given["name"])
        self.rng = random.Random(seed)
        self.call = Caller(town.url, self.name, given["token"], town.ledger, self.rng, town.given_up)
        self.trainings: list[int] = []
        self.shapes: dict[str, tuple[int, int]] = {}  # shape → (task, revision)
        self.acts = [self.look, self.look_at_job, self.submit, self.steer, self.sign_in, self.upload]
        self.weights = [30, 15, 25, 10, 1, 1.5]
        if given.get("set"):
            self.acts += [self.draw, self.export]
            self.weights += [40, 2]

    async def live(self) -> None:
        """Click on until the evening; an act that was begun is brought to its end."""
        await asyncio.sleep(self.rng.uniform(0, self.town.think_s))  # pause: somebody thinks
        await self.sign_in()
        while not self.town.evening.is_set():
            await self.rng.choices(self.acts, self.weights)[0]()
            await self.town.until_evening(self.rng.expovariate(1 / self.town.think_s))
        await self.call.close()

    async def sign_in(self) -> None:
        """As a browser does it; again and again while the platform is away."""
        while not self.town.given_up.is_set():
            form = await self.call.ask("GET", "/login/", page=True)
            found = _TOKEN.search(form.body.decode(errors="replace"))
            if form.status == 302:
                return
            if found:
                fields = {"username": self.name, "password": PASSWORD, "csrfmiddlewaretoken": found[1]}
                headers = {"Referer": f"{self.town.url}/login/"}
                answer = await self.call.ask("POST", "/login/", page=True, data=fields, headers=headers)
                if answer.status == 302:
                    return
                if answer.status in {200, 401, 403, 422, 429}:
                    text = f"{answer.status}: a good password was refused"
                    self.town.ledger.say("error", by=self.name, status=answer.status, asked="POST /login/", text=text)
                    return
            await asyncio.sleep(1)

    async def look(self) -> None:
        path = self.rng.choice(PAGES)
        answer = await self.call.ask("GET", path, page=True)
        if answer.status == 302:
            if "/login/" in answer.headers.get("location", ""):
                self.town.ledger.say("signed_out", by=self.name, path=path)
                await self.sign_in()
        elif answer.status not in {200, 0, 502, 503, 500}:
            self.town.ledger.say("error", by=self.name, status=answer.status, asked=f"GET {path}", text="of a page")
        self.town.count(answer.status)

    async def look_at_job(self) -> None:
        if not self.trainings:
            await self.look()
            return
        number = self.rng.choice(self.trainings[-10:])
        for path, page in ((f"/training/{number}/", True), (f"/api/v1/training/jobs/{number}/", False)):
            answer = await self.call.ask("GET", path, page=page)
            self.town.count(answer.status)
            if answer.status == 404:
                self.town.ledger.say("missing", by=self.name, path=path)

    async def submit(self) -> None:
        """One intention, one key, as many requests as it takes."""
        if not self.town.has_room():
            await self.look()
            return
        habit, long = self.rng.choice(HABITS), self.rng.random() < LONG
        lines, pause_s = (
            (round(self.town.long_s * self.rng.uniform(2.5, 7.5)), 0.15) if long else (self.rng.randint(5, 60), 0.1)
        )
        code = self.rng.choice([0, 0, 0, 0, 3])
        key = uuid.uuid4().hex
        name = f"{habit}_{key}"
        self.town.ledger.say("submit", by=self.name, name=name, lines=lines, exit_code=code, habit=habit)
        asked: dict[str, Any] = {
            "name": name, "version": self.given["version"], "start_file": "witness.py", "cpus": 0.5,
            "arguments": f"{lines} {pause_s} {code} {habit}", "gpus_per_node": int(self.rng.random() < 0.15),
        }  # fmt: skip
        if self.rng.random() < 0.15:
            answer = await self.call.insist(
                "POST", "/api/v1/training/jobs/", once=True, key=key, data=lambda: _form(asked, self.town.archive)
            )
        else:
            asked["code"] = self.given["code"]
            answer = await self.call.insist("POST", "/api/v1/training/jobs/", once=True, key=key, json=asked)
        row = answer.json()
        job = row.get("job") if answer.ok else None
        said = "" if answer.ok else answer.body[:200].decode(errors="replace")
        self.town.ledger.say("submitted", by=self.name, name=name, status=answer.status, job=job, text=said)
        if job:
            self.trainings.append(row["id"])

    async def steer(self) -> None:
        """Press a button of one of the own jobs; whether it is legal is the platform's to say."""
        row = self.town.one_of(self.name, self.rng)
        if row is None:
            await self.look()
            return
        verbs = ["continue"] if row["state"] == "paused" else ["pause", "pause", "stop", "finish"]
        await self.press(row["id"], self.rng.choice(verbs))

    async def press(self, job: int, verb: str) -> None:
        """Ask it of a job, with a key, until answered."""
        self.town.ledger.say("steer", by=self.name, job=job, verb=verb)
        answer = await self.call.insist("POST", f"/api/v1/jobs/{job}/{verb}/", once=True)
        self.town.ledger.say("steered", by=self.name, job=job, verb=verb, status=answer.status)

    async def draw(self) -> None:
        """Draw some boxes, move or delete one; saved until it is answered, as the annotator does."""
        task = self.rng.choice(self.given["tasks"])
        events = [self._edit(str(uuid.uuid4()), 0) for _box in range(self.rng.randint(1, 4))]
        mine = [shape for shape, (where, _rev) in self.shapes.items() if where == task]
        if mine and self.rng.random() < 0.5:
            shape = self.rng.choice(mine)
            events.append(self._edit(shape, self.shapes[shape][1], delete=self.rng.random() < 0.3))
        for event in events:
            rings = event.get("rings")
            self.town.ledger.say("edit", by=self.name, task=task, id=event["id"], shape=event["shape"], rings=rings)
        path = f"/api/v1/annotation/projects/{self.given['project']}/tasks/{task}/shapes/"
        answer = await self.call.insist("POST", path, json={"events": events})
        results = {row["id"]: row for row in answer.json().get("results", [])}
        for event in events:
            row = results.get(event["id"], {})
            if row.get("status") == "stored":
                self.town.ledger.say("edited", by=self.name, id=event["id"], rev=row["rev"])
                if event["op"] == "delete":
                    self.shapes.pop(event["shape"], None)
                else:
                    self.shapes[event["shape"]] = (task, row["rev"])
            elif answer.status:
                self.shapes.pop(event["shape"], None)
                text = f"{answer.status}: {answer.body[:300].decode(errors='replace')}"
                self.town.ledger.say("error", by=self.name, status=answer.status, asked=f"edit {event}", text=text)
            else:
                self.shapes.pop(event["shape"], None)  # nobody knows whether it was stored: it is left alone

    def _edit(self, shape: str, base: int, *, delete: bool = False) -> dict[str, Any]:
        edit: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "shape": shape,
            "base": base,
            "op": "delete" if delete else "put",
        }
        if not delete:
            x, y = round(self.rng.uniform(0, 25), 2), round(self.rng.uniform(0, 20), 2)
            right, low = round(x + self.rng.uniform(2, 9), 2), round(y + self.rng.uniform(2, 9), 2)
            edit |= {"kind": "bbox", "label": self.given["label"], "rings": [[x, y, right, y, right, low, x, low]]}
        return edit

    async def export(self) -> None:
        """Convert the own set to COCO and fetch the file; it holds what had been drawn by then."""
        drawn = len(self.shapes)
        path = f"/api/v1/annotation/projects/{self.given['project']}/exports/"
        asked = {"dataset": self.given["set"], "target": "coco", "make_version": False}
        answer = await self.call.insist("POST", path, once=True, json=asked)
        if not answer.ok:
            self.town.ledger.say("exported", by=self.name, status=answer.status, text=answer.body[:200].decode())
            return
        number = answer.json()["id"]
        row = await self._ended(f"{path}{number}/", {"success", "failed"})
        file = await self.call.insist("GET", f"{path}{number}/download/") if row.get("state") == "success" else None
        self.town.ledger.say(
            "exported", by=self.name, status=answer.status, export=number, state=row.get("state", "unknown"),
            detail=row.get("detail", ""), sha256=row.get("sha256"), drawn=drawn,
            **uploading.facts_of_coco(file.body if file else b""),
        )  # fmt: skip

    async def upload(self) -> None:
        await uploading.bring_in(self.call, self.town, self.rng)

    async def _ended(self, path: str, final: set[str]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        while row.get("state") not in final and not self.town.given_up.is_set():
            await asyncio.sleep(1)
            row = (await self.call.ask("GET", path)).json()
        return row


def _form(fields: dict[str, Any], archive: bytes) -> aiohttp.FormData:
    form = aiohttp.FormData()
    for name, value in fields.items():
        form.add_field(name, str(value))
    form.add_field("code_archive", io.BytesIO(archive), filename="code.zip", content_type="application/zip")
    return form
