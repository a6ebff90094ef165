"""A pipeline from pictures to a service, drawn by mouse: `python -m tests.browser.pipeline_story FOLDER_OF_BCCD`.

Starts a platform on a throw-away folder. Alice draws data, training, evaluation, gate, approval, conversion, service
and message, and starts it; scheduler, agent, web and workers are killed at random while it trains and converts; Anna
answers; the pipeline is changed, compared with its past and run again. Prints what was seen, ends with 1 where
something was not as it should be, and keeps pictures of the pages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.browser.at_work import LONG_S, AtWork
from tests.browser.conftest import ARGS, CHROMIUM
from tests.journeys.up import Up, call, running, until

#: What may die: by words of its command line.
MORTAL = {
    "web": "aiplatform.cli.web", "worker": "work@node1", "light worker": "cpu@node1",
    "scheduler": "manage.py\0scheduler", "agent": "manage.py\0agent",
}  # fmt: skip
OVER = ("ok", "failed", "cancelled")

#: In the order in which they are drawn: kind, what is typed, links to it (output of an earlier step, own input).
DRAWN: tuple[tuple[str, dict[str, str], tuple[tuple[str, str, str], ...]], ...] = (
    ("dataset", {"dataset": "bccd"}, ()),
    ("train", {"minutes": "2", "model": "cells", "cpus": "2"}, (("dataset", "data", "data"),)),
    ("evaluate", {"split": "test"}, (("train", "model", "model"), ("dataset", "data", "data"))),
    ("gate", {"rule": "AP50 >= 0.02"}, (("evaluate", "figures", "figures"),)),
    ("approve", {"question": "Put these cells to work?", "people": "anna"}, (("gate", "passed", "when"),)),
    ("convert", {"targets": "int8", "max_loss": "0.1"}, (
        ("approve", "passed", "when"), ("train", "model", "model"), ("dataset", "data", "data"))),
    ("serve", {"service": "cells"}, (("convert", "model", "model"),)),
    ("notify", {"text": "New cells are in use", "people": "anna"}, (("serve", "service", "for"),)),
)  # fmt: skip


class Reaper(threading.Thread):
    """Kills one of the platform's processes after another, at random, until it is told to stop."""

    def __init__(self, up: Up, pauses: tuple[float, float]) -> None:
        super().__init__(daemon=True)
        self.up, self.pauses, self.over = up, pauses, threading.Event()
        self.killed: Counter[str] = Counter()

    def run(self) -> None:
        chance = random.Random(7)
        while not self.over.wait(chance.uniform(*self.pauses)):
            name = chance.choice(sorted(MORTAL))
            self.killed[name] += self.up.kill(MORTAL[name], signal.SIGKILL) > 0

    def __enter__(self) -> Reaper:
        self.start()
        return self

    def __exit__(self, *_about: object) -> None:
        self.over.set()
        self.join()


class Story(AtWork):
    """Alice's pipeline, and Anna who is asked."""

    pauses = (0.5, 3.0)

    def draw(self) -> None:
        """The whole pipeline, by mouse."""
        page = self.alice
        page.goto("/pipelines/new/")
        page.locator("#id_name").fill("cells")
        page.locator("main form button[name=template][value='']").click()
        page.wait_for_url(re.compile(r"/pipelines/\d+/edit/"))
        self.pipeline = int(re.findall(r"/pipelines/(\d+)/", page.url)[0])
        page.wait_for_selector("#pipeline-editor:not([data-busy])")
        canvas = page.locator(".pl-canvas")
        for kind, typed, links in DRAWN:
            offered = page.locator(f".pl-kind[data-kind={kind}]")
            offered.scroll_into_view_if_needed()
            self.pull(offered, canvas)
            step = page.locator(f".pl-step[data-id={kind}]")
            expect(step).to_be_focused()
            self.arrange()  # so that no step hides another
            for source, port, own in links:
                self.link(kind, f"{source}.{port}", own)
                step.click(position={"x": 12, "y": 12})
            for name, value in typed.items():
                self.type(page.locator(f".pl-panel [data-field='with.{name}']"), value)
            canvas.focus()
        self.arrange()
        ready = "pipelineEditor.issues.checked > 0 && pipelineEditor.draft.state === 'saved'"
        until(lambda: page.evaluate(ready), 60, "the draft's keeping")
        self.seen(page, "1-drawn")
        said = page.evaluate("pipelineEditor.issues.all.map(({ step, message }) => step + ': ' + message)")
        self.judge(f"the drawing has no problems {said}", said == [])

    def arrange(self) -> None:
        for key in ("a", "f"):
            self.alice.keyboard.press(key)
        for _frame in range(2):
            self.alice.evaluate("new Promise((done) => requestAnimationFrame(() => done()))")

    def link(self, step: str, source: str, own: str) -> None:
        """From port to port, or in the form where the steps are too far from each other to show their ports."""
        giver, port = source.split(".")
        start = self.dot(giver, "out", port)
        if start.is_visible():
            end = self.alice.locator(f".pl-step[data-id={step}]") if own == "when" else self.dot(step, "in", own)
            self.pull(start, end)
            return
        self.alice.locator(f".pl-step[data-id={step}]").click(position={"x": 12, "y": 12})
        field = self.alice.locator(f".pl-panel [data-field='{own if own == 'when' else f'from.{own}'}']")
        field.focus()
        field.select_option(label=source)

    def dot(self, step: str, side: str, port: str) -> Locator:
        return self.alice.locator(f".pl-step[data-id={step}] .pl-dot[data-side={side}][data-port='{port}']")

    def pull(self, start: Locator, end: Locator) -> None:
        """Press at the middle of one thing and let go at the middle of another."""
        a, b, mouse = start.bounding_box(), end.bounding_box(), self.alice.mouse
        assert a is not None
        assert b is not None
        mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
        mouse.down()
        mouse.move(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2, steps=6)
        mouse.up()

    def type(self, field: Locator, value: str) -> None:
        field.fill(value)
        field.press("Tab")

    def save(self, note: str) -> int:
        """A version of what is drawn; its number."""
        page = self.alice
        page.locator(".pl-bar-acts .btn-primary").click()
        page.locator("dialog[open] textarea").fill(note)
        page.locator("dialog[open] button[type=submit]").click()
        expect(page.locator(".toast-ok").last).to_be_visible()
        return max(int(one["number"]) for one in self.api(f"pipelines/{self.pipeline}/versions/"))

    def start(self, version: int) -> int:
        """Run a version from its page; the run."""
        page = self.alice
        page.goto(f"/pipelines/{self.pipeline}/run/?version={version}")
        page.locator("main form button.btn-primary").click()
        page.wait_for_url(re.compile(r"/pipelines/runs/\d+/"))
        return int(re.findall(r"/runs/(\d+)/", page.url)[0])

    def first_run(self) -> None:
        """Killed at random while it trains; asked; killed again while it converts and begins to serve."""
        self.run = self.start(self.save("first"))
        began = time.monotonic()
        with Reaper(self.up, self.pauses) as first:
            until(lambda: self.state(self.run, "approve") not in ("", "waiting"), LONG_S, "the question")
        print(f"    asked after {time.monotonic() - began:.0f} s and {dict(first.killed)}", flush=True)
        self.back()
        self.alice.goto(f"/pipelines/runs/{self.run}/")
        self.seen(self.alice, "2-asking")
        page = self.anna
        page.goto("/")
        page.goto(f"/pipelines/runs/{self.run}/")
        self.seen(page, "3-asked")
        page.locator("button[value='passed']").first.click()
        until(lambda: self.state(self.run, "approve") == "ok", LONG_S, "the answer")
        with Reaper(self.up, self.pauses) as second:
            until(lambda: self.row("run", self.run)[0] in OVER, LONG_S, "the end of the run")
        self.killed = first.killed + second.killed
        print(f"    over after {time.monotonic() - began:.0f} s and {dict(second.killed)}", flush=True)
        self.back()
        self.alice.goto(f"/pipelines/runs/{self.run}/")
        self.seen(self.alice, "4-over")
        self.judge_run()

    def judge_run(self) -> None:
        """Each step once, each job once, a service that answers, and somebody who was told."""
        steps = self.rows("SELECT step, attempt, state, job_id FROM pipelines_steprun WHERE run_id = ?", self.run)
        self.judge(f"all steps are good: {steps}", {row[2] for row in steps} == {"ok"})
        self.judge("each step was begun once", sorted(row[:2] for row in steps) == sorted((k, 1) for k, *_ in DRAWN))
        jobs = self.rows("SELECT kind, COUNT(*) FROM workers_job GROUP BY kind")
        wanted = {"training": 1, "evaluation": 1, "conversion": 1, "service": 1}
        self.judge(
            f"each job was made once: {jobs}", all(dict(jobs).get(kind) == count for kind, count in wanted.items())
        )
        service = self.api("services/")["results"][0]
        address = f"{self.up.url}/serve/{service['slug']}/predict"
        request = urllib.request.Request(
            address, self.tests[0].read_bytes(), {"Authorization": f"Bearer {self.token}", "Content-Type": "image/jpeg"}
        )
        answer = until(lambda: json.load(urllib.request.urlopen(request, timeout=60)), LONG_S, "an answer")
        self.judge(f"the service finds {len(answer['predictions'])} cells", len(answer["predictions"]) > 0)
        told = self.rows("SELECT COUNT(*) FROM accounts_notification WHERE title LIKE ?", "%New cells are in use%")
        self.judge(f"Anna was told once: {told}", told == [(1,)])

    def second_run(self) -> None:
        """A harder rule, seen beside the old one; the run takes what it can from the first."""
        page = self.alice
        page.goto(f"/pipelines/{self.pipeline}/edit/")
        page.wait_for_selector("#pipeline-editor:not([data-busy])")
        page.locator(".pl-step[data-id=gate]").click()
        self.type(page.locator(".pl-panel [data-field='with.rule']"), "AP50 >= 0.99")
        version = self.save("harder")
        page.goto(f"/pipelines/{self.pipeline}/versions/")
        expect(page.locator("main")).to_contain_text("AP50 >= 0.99")
        self.seen(page, "5-changed")
        run = self.start(version)
        until(lambda: self.row("run", run)[0] in OVER, LONG_S, "the end of the second run")
        page.reload()
        self.seen(page, "6-again")
        states = {
            row[0]: row[1] for row in self.rows("SELECT step, state FROM pipelines_steprun WHERE run_id = ?", run)
        }
        self.judge(
            f"the second run trains nothing and ships nothing: {states}",
            states["train"] == states["evaluate"] == "cached" and states["serve"] == "skipped",
        )

    def parts(self) -> None:
        """The model and its INT8 twin beside each other, by parts of the pictures."""
        self.aip("evaluate", "start", "cells:2", "--data", "bccd", "--split", "test", "--wait")
        rows = self.api("evaluations/")["results"]
        chosen = "&".join(f"evaluation={row['id']}" for row in rows[:2])
        page = self.alice
        page.goto(f"/evaluations/compare/?{chosen}")
        self.seen(page, "7-compared")
        page.goto(f"/evaluations/compare/slices/?{chosen}")
        self.seen(page, "8-slices")

    # What is there

    def rows(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """Read tables without asking the platform, which would be nudged by that."""
        path = f"file:{self.up.folder / 'aiplatform.sqlite3'}?mode=ro"
        with closing(sqlite3.connect(path, uri=True, timeout=30)) as base:
            return base.execute(question, values).fetchall()

    def row(self, what: str, number: int) -> tuple[Any, ...]:
        return self.rows(f"SELECT state FROM pipelines_pipeline{what} WHERE id = ?", number)[0]

    def state(self, run: int, step: str) -> str:
        found = self.rows("SELECT state FROM pipelines_steprun WHERE run_id = ? AND step = ?", run, step)
        return str(found[0][0]) if found else ""

    def back(self) -> None:
        until(lambda: call(self.up.url, self.token, "GET", "me/")[0] == 200, 120, "the web server's return")


def main() -> int:
    """Walk; 0 where all was as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder BCCD of github.com/Shenggan/BCCD_Dataset")
    parser.add_argument("--keep", type=Path, default=Path("pipeline-story"), help="where pictures of the pages go")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds from one kill to the next, about")
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)

    def look(page: Page, name: str) -> None:
        page.screenshot(path=asked.keep / f"{name}.png", full_page=True)

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        with running(Path(scratch) / "data") as up:
            walk = Story(up, chromium, Path(scratch), look=look)
            walk.pauses = (asked.pause / 2, asked.pause * 3 / 2)
            walk.begin(asked.data, Path(scratch))
            for act in (walk.draw, walk.first_run, walk.second_run, walk.parts):
                began = time.monotonic()
                print(act.__name__, flush=True)
                act()
                print(f"    {time.monotonic() - began:.0f} s", flush=True)
            walk.close()
        chromium.close()
    print("all as it should be" if not walk.failures else f"wrong: {'; '.join(walk.failures)}")
    return 1 if walk.failures else 0


if __name__ == "__main__":
    sys.exit(main())
