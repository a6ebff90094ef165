"""A model at work, on real pictures: `python -m tests.browser.at_work FOLDER_OF_BCCD [--keep FOLDER]`.

Starts a platform on a throw-away folder and takes one detector of blood cells from its training to its corrections:
INT8 with its loss, a canary under load, three edge devices of which one is killed while it updates, cells that are
counted in a film, and ten wrong answers that become an annotated dataset. Prints what was seen, ends with 1 where
something was not as it should be, and keeps pictures of the pages.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.cells import Load, film
from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.walk import PASSWORD, PATIENCE_MS, Walk
from tests.journeys.up import ROOT, call, running, until
from tests.running import free_port

SOON, LONG_S = 120, 1800
LINE = {"lines": [{"name": "middle", "points": [[0.5, 0.0], [0.5, 1.0]]}], "zones": []}


class Device:
    """An agent on a device of its own folder, its local port, its process."""

    def __init__(self, agent: Path, folder: Path) -> None:
        self.agent, self.folder, self.port = agent, folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def enrol(self, server: str, code: str) -> None:
        self._run("enrol", "--server", server, "--code", code).wait(60)

    def start(self) -> None:
        self.process = self._run("run", "--port", self.port, "--every", 1)

    def _run(self, *words: object) -> subprocess.Popen[bytes]:
        argv = [sys.executable, str(self.agent), "--root", str(self.folder), *map(str, words)]
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)

    def kill(self) -> None:
        """End it and its model server at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def places(self) -> set[str]:
        """Folders of packages, whole or on their way."""
        return {str(path.relative_to(self.folder)) for path in self.folder.glob("*/*")}

    def predict(self, picture: Path) -> list[Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/predict", picture.read_bytes())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return list(json.load(answer)["predictions"])


class AtWork(Walk):
    """Alice and her detector."""

    def begin(self, data: Path, folder: Path) -> None:
        """People and pictures."""
        self.data, self.folder, self.failures = data, folder, list[str]()
        names = (data / "ImageSets" / "Main" / "test.txt").read_text().split()
        self.tests = [data / "JPEGImages" / f"{name}.jpg" for name in names]
        self.people()
        answer: Any = call(
            self.up.url, "", "POST", "auth/token/", {"username": "alice", "password": PASSWORD + "alice"}
        )[1]
        self.token = answer["token"]
        self.aip("upload", "bccd", data, "--wait")

    def train_for(self, minutes: float) -> None:
        """A training of so many minutes."""
        budget = f"budget_minutes={minutes}"
        self.aip(
            "train", "submit", "cells", "--data", "bccd", "--preset", "detect", "--cpus", 2, "-p", budget, "--wait"
        )

    def aip(self, *words: object) -> Any:
        """A command of the terminal, as Alice; its JSON, None where it prints none."""
        env = os.environ | {"AIP_TOKEN": self.token, "AIP_URL": self.up.url, "AIP_BOOTSTRAP": "0"}
        argv = [sys.executable, str(ROOT / "manage.py"), "aip", *map(str, words), "--json"]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=LONG_S, check=False)
        if done.returncode:
            raise RuntimeError(f"aip {' '.join(map(str, words))}: {done.stdout}{done.stderr}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return None

    def api(self, route: str) -> Any:
        status, answer = call(self.up.url, self.token, "GET", route)
        assert status == 200, (route, answer)
        return answer

    def judge(self, what: str, good: bool) -> None:
        """Note whether something is as it should be."""
        print(f"  {'ok  ' if good else 'FAIL'} {what}", flush=True)
        if not good:
            self.failures.append(what)

    def convert(self) -> None:
        """FP16 and INT8 of it, with what each loses."""
        page = self.alice
        page.goto("/conversions/new/")
        for name, begins in (("model_version", "cells"), ("version", "bccd")):
            choice = page.locator(f"#id_{name}")
            choice.select_option(label=self._option(choice.locator("option").all_inner_texts(), begins))
        page.locator("#id_keep").select_option("all")
        page.locator("#id_max_loss").fill("0.05")  # a short training is not robust
        page.locator("#submit-form button.btn-primary").click()
        page.wait_for_url(re.compile(r"/conversions/\d+/$"))
        number = int(page.url.rstrip("/").rpartition("/")[2])
        ends = ("succeeded", "failed", "stopped")
        row = until(
            lambda: (one := self.api(f"conversions/{number}/"))["state"] in ends and one["published"] and one,
            LONG_S, "the conversion",
        )  # fmt: skip
        page.reload()
        self.seen(page, "1-conversion")
        for one in row["variants"]:
            print("   ", one["target"], one["state"], json.dumps(one["figures"])[:600])
        self.int8 = next((one for one in row["variants"] if one["target"] == "int8"), None)
        self.judge("INT8 was judged and accepted", bool(self.int8 and self.int8["made"]))

    def _option(self, texts: list[str], begins: str) -> str:
        return next(text for text in texts if text.strip().startswith(begins))

    def canary(self) -> None:
        """The INT8 version as a canary of a service, and promoted, while three callers never pause."""
        page = self.alice
        service = self.aip("serve", "create", "cells", "--model", "cells:1", "--wait")
        self.service = service["id"]
        url = f"{self.up.url}/serve/{service['slug']}/predict"
        with Load(url, self.token, [file.read_bytes() for file in self.tests[:20]]) as load:
            page.goto(f"/services/{self.service}/trial/")
            page.locator("#id_model_version").select_option(str(self.int8["made"]))
            page.locator("#id_percent").fill("25")
            page.locator("main form.card button.btn-primary").click()
            tried = until(
                lambda: (one := self._trial()) and one["tried"]["requests"] >= 100 and one, LONG_S, "100 tried requests"
            )
            page.goto(f"/services/{self.service}/")
            self.seen(page, "2-canary")
            page.locator("form[action$='promote/'] button").click()
            expect(page.locator(".service-trial")).to_have_count(0)
            before = sum(load.told.values())
            until(lambda: sum(load.told.values()) > before + 300, LONG_S, "300 requests after the promotion")
        times = sorted(load.times)
        print(
            f"    {dict(load.told)}, p50 {1000 * times[len(times) // 2]:.0f} ms, "
            f"p99 {1000 * times[len(times) * 99 // 100]:.0f} ms; tried {tried['tried']['requests']}, "
            f"beside {tried['beside_figures']['requests']}"
        )
        self.judge("no request was lost while the model changed", set(load.told) == {200})
        page.goto(f"/services/{self.service}/usage/")
        self.seen(page, "3-usage")

    def _trial(self) -> Any:
        return next(iter(self.api(f"services/{self.service}/trials/")), None)

    def edge(self) -> None:
        """Three devices get the model, then the INT8 one; the first is killed while it updates."""
        page = self.alice
        group = self.aip("edge", "create", "gates")["id"]
        agent = self.folder / "aip-edge.pyz"
        with urllib.request.urlopen(f"{self.up.url}/edge/aip-edge.pyz", timeout=60) as sent:
            agent.write_bytes(sent.read())
        self.devices = [Device(agent, self.folder / f"gate-{number}") for number in range(3)]
        for device in self.devices:
            device.enrol(self.up.url, self.aip("edge", "add", "gates", device.folder.name)["code"])
            device.start()
        self.aip("edge", "release", "gates", "cells:1", "--share", 100)
        self._all_run(group)
        first = self.devices[0]
        before = first.places()
        self.aip("edge", "release", "gates", self.int8["made"], "--share", 100)
        until(lambda: first.places() - before, SOON, "the beginning of an update")
        first.kill()
        print(f"    killed while it had {sorted(first.places() - before)} of the update", flush=True)
        first.start()
        self._all_run(group)
        page.goto(f"/edge/{group}/")
        self.seen(page, "4-edge")
        answers = [len(device.predict(self.tests[0])) for device in self.devices]
        self.judge(f"all three devices run the new model and answer alike: {answers}", len(set(answers)) == 1)
        for device in self.devices:
            device.kill()

    def _all_run(self, group: int) -> None:
        def there() -> bool:
            wanted = self.api(f"edge-groups/{group}/")["wanted_sha256"]
            rows = self.api(f"edge-groups/{group}/devices/")
            return len(rows) == 3 and all(
                row["package"] == wanted and row["outcome"] in ("same", "updated") for row in rows
            )

        until(there, 4 * SOON, "the model on all devices")

    def watch(self) -> None:
        """A film of cells that move past a line; what is counted against what is known."""
        file, places = self.folder / "cells.mp4", self.folder / "places.json"
        known = film(self.data, file)
        self.aip("evaluate", "start", "cells:1", "--data", "bccd", "--split", "test", "--wait")  # its best score
        places.write_text(json.dumps(LINE))
        self.aip("video", "start", "cells:1", file, "--places", places, "--wait")
        row = self.api("videos/")["results"][0]
        summary = self.api(f"videos/{row['id']}/results/")
        line = next(iter(summary["lines"]), {})
        white = sum(
            event["class_name"] == "WBC"
            for event in self.api(f"videos/{row['id']}/events/?limit=200&place=middle")["results"]
        )
        print(f"    known {dict(known)}; counted {json.dumps(line)[:600]}; white cells {white}")
        apart = abs(line.get("in", 0) - known.total())
        self.judge("cells that cross the line are counted to a fifth", apart <= known.total() / 5)
        page = self.alice
        page.goto(f"/videos/{row['id']}/")
        self.seen(page, "5-video")

    def correct(self) -> None:
        """Ten wrong answers from the service's page into an annotated dataset."""
        page = self.alice
        page.goto(f"/services/{self.service}/")
        told, wrong = page.locator("#wrong [role=status]"), page.locator("#wrong button")
        for picture in self.tests[:10]:
            page.set_input_files("#picture", str(picture))
            expect(wrong).to_be_enabled(timeout=PATIENCE_MS)
            expect(told).to_be_empty(timeout=PATIENCE_MS)
            wrong.click()
            expect(told).not_to_be_empty(timeout=PATIENCE_MS)
        self.seen(page, "6-wrong")
        page.goto(f"/services/{self.service}/samples/")
        expect(page.locator(".samples li")).to_have_count(10)
        self.seen(page, "7-samples")
        page.locator("#id_name").fill("corrected")
        page.locator("main form.card button.btn-primary").click()
        page.wait_for_url(re.compile(r"/datasets/\d+/"))
        number = int(re.findall(r"/datasets/(\d+)/", page.url)[0])

        def made() -> Any:
            rows = self.api(f"datasets/{number}/versions/")["results"]
            return next((row for row in rows if row["state"] == "ready"), None)

        version = until(made, LONG_S, "the version")
        page.goto(f"/datasets/{number}/")
        page.locator(".gallery .tile").first.wait_for()
        self.seen(page, "8-corrected")
        said = f"ten pictures came back, with {version['annotations']} boxes as drafts"
        self.judge(said, version["images"] == 10 and version["annotations"] > 0)


def main() -> int:
    """Walk; 0 where all was as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder BCCD of github.com/Shenggan/BCCD_Dataset")
    parser.add_argument("--keep", type=Path, default=Path("at-work"), help="where pictures of the pages go")
    parser.add_argument("--minutes", type=float, default=2.5, help="of training")
    asked = parser.parse_args()
    asked.keep.mkdir(parents=True, exist_ok=True)

    def look(page: Page, name: str) -> None:
        page.screenshot(path=asked.keep / f"{name}.png", full_page=True)

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        with running(Path(scratch) / "data") as up:
            walk = AtWork(up, chromium, Path(scratch), look=look)
            walk.begin(asked.data, Path(scratch))
            walk.train_for(asked.minutes)
            for act in (walk.convert, walk.canary, walk.edge, walk.watch, walk.correct):
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
