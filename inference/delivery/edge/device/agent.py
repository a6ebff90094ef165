"""The agent program of a device: fetch, verify and install releases in steps, each of which may be the last one."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any

from . import VERSION, checking, samples
from .about import hardware
from .diary import Diary
from .durable import Json, crash_point, drop, load, point, sync_folder, write
from .front import Front
from .trust import HAS_KEYS, Refused, canonical, check_keys, check_seal

CHUNK = 256 << 10
MAX_BYTES, MAX_UNPACKED_BYTES, MAX_FILES = 4 << 30, 8 << 30, 2000
SKEW_S = 24 * 3600  # clocks of small devices drift
TRIES = 3  # of a package on trial, counted before each: one that kills the agent is not tried for ever
READ_S, TIME_S = 20, 60
SENT_AT_ONCE, NEVER_TAKEN = 20, (400, 413, 415, 422)  # samples in a round; answers that will not change
NEEDS = ("onnxruntime", "numpy", "PIL")


class Straight(urllib.request.HTTPRedirectHandler):
    """No way to another address: the token would go along."""

    def redirect_request(self, *_args: Any) -> None:
        return None


OPENER = urllib.request.build_opener(Straight)


class Agent:
    """What is installed here, and how the next thing is."""

    def __init__(self, root: Path, front: Front | None = None) -> None:
        self.root, self.store, self.parts = root, root / "store", root / "part"
        self.current, self.previous = root / "current", root / "previous"
        for folder in (self.store, self.parts):
            folder.mkdir(parents=True, exist_ok=True)
        self.device = load(root / "device.json", {})
        self.trust = load(root / "trust.json", {"version": 0, "keys": {}})
        start: Json = {"release": [0, 0], "bad": [], "seen": 0.0, "trial": "", "tries": 0, "etag": "", "word": None,
                       "speed": {}, "samples": None, "told": 0, "tests": {}}  # fmt: skip
        self.memory = load(root / "memory.json", start)
        self.diary, self.last_outcome = Diary(root / "diary"), ("", "")
        self.logged_samples_state = samples.OFF
        self.differs: Json = {}  # of the self-test of this round: which answer, by how much
        self.front = front
        if front:
            front.log_line = self.diary.add
        self.samples = front.samples if front else None
        if self.samples:
            self.samples.follow(self.memory["samples"])
        for junk in self.store.glob("*.tmp"):
            shutil.rmtree(junk, ignore_errors=True)

    def remember(self, **values: Any) -> None:
        self.memory.update(values)
        write(self.root / "memory.json", canonical(self.memory))

    def open_url(
        self, path: str, *, body: Mapping[str, Any] | bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Open an address of the server below /api/v1/edge/."""
        all_headers = {"User-Agent": f"aip-edge/{VERSION}", **(headers or {})}
        if token := self.device.get("token"):
            all_headers["Authorization"] = f"Edge {token}"
        data = canonical(body) if isinstance(body, Mapping) else body
        if isinstance(body, Mapping):
            all_headers["Content-Type"] = "application/json"
        url = f"{self.device['server'].rstrip('/')}/api/v1/edge/{path}"
        return OPENER.open(urllib.request.Request(url, data, all_headers), timeout=READ_S)

    def now(self) -> float:
        """Never earlier than a time it saw: a dead clock battery must not make old words young."""
        return max(time.time(), float(self.memory["seen"]))

    @property
    def installed(self) -> str:
        """The package in use; "" before the first."""
        return self.current.resolve().name if self.current.is_symlink() else ""

    # 1. What should run here
    def fetch_release(self) -> Json:
        """Return the verified release for this device; the stored one where the server reports no change."""
        response = self._fetch_signed_release()
        for successor in response.get("trust", []):
            document = successor["document"]
            if HAS_KEYS and document["version"] == self.trust["version"] + 1:
                check_keys(document, successor["signatures"], self.trust)
                write(self.root / "trust.json", canonical(document))
                self.trust = document
        release: Json = response["document"]
        if HAS_KEYS:
            check_keys(release, response["signatures"], self.trust)
        else:
            check_seal(release, response["sealed"], self.device["secret"])
        if release["device"] != self.device["device"]:
            raise Refused("wrong_device", "this release is for another device")
        order = [self.trust["version"], release["number"]]  # a new key restarts the count; a stolen key keeps its own
        if order < self.memory["release"]:
            raise Refused("older", f"release {order} is older than {self.memory['release']}")
        if release["expires"] + SKEW_S < self.now():
            raise Refused("expired", "the release is out of date; the model in use stays")
        self.remember(release=order, seen=max(float(self.memory["seen"]), float(release["signed_at"])))
        return release

    def _fetch_signed_release(self) -> Json:
        try:
            headers = {"If-None-Match": self.memory["etag"]} if self.memory["word"] else {}
            with self.open_url("word", headers=headers) as response:
                signed: Json = json.loads(response.read(1 << 20))
                self.remember(word=signed, etag=response.headers.get("ETag", ""))
                return signed
        except urllib.error.HTTPError as exc:
            if exc.code == 304 and self.memory["word"]:
                return dict(self.memory["word"])
            raise

    # 2. Its bytes, resumed where the last attempt ended
    def download(self, sha: str, size: int) -> Path:
        part = self.parts / sha
        for other in self.parts.iterdir():
            if other != part:
                other.unlink()
        have = part.stat().st_size if part.exists() else 0
        if not 0 < size <= MAX_BYTES or shutil.disk_usage(self.root).free < 3 * size - have:
            raise Refused("no_room", f"the package has {size} bytes")
        if have < size:
            ranges = {"Range": f"bytes={have}-"} if have else {}
            with self.open_url(f"packages/{sha}", headers=ranges) as answer, part.open("ab" if have else "wb") as out:
                if have and answer.status != 206:
                    out.truncate(0)
                while out.tell() <= size and (block := answer.read(min(CHUNK, size - out.tell() + 1))):
                    out.write(block)
                    crash_point("downloading")
                out.flush()
                os.fsync(out.fileno())
        with part.open("rb") as made:
            if part.stat().st_size == size and hashlib.file_digest(made, "sha256").hexdigest() == sha:
                return part
        if part.stat().st_size >= size:
            part.unlink()  # damaged: a resumed download would stay so
            raise Refused("damaged", "the package is not what was signed")
        raise OSError("the download was cut")

    # 3. A complete folder in the store
    def unpack(self, part: Path, sha: str) -> Path:
        folder, temporary = self.store / sha, self.store / f"{sha}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        with zipfile.ZipFile(part) as package:
            entries = package.infolist()
            if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
                raise Refused("damaged", "the package is larger than any model")
            for entry in entries:
                path_inside = (temporary / entry.filename).resolve()
                if not path_inside.is_relative_to(temporary.resolve()) or entry.external_attr >> 28 == 0xA:
                    raise Refused("damaged", "a name in the package leads out of it")
            package.extractall(temporary)  # each name was looked at above
        crash_point("unpacked")
        for path in sorted(temporary.rglob("*"), reverse=True):
            sync_folder(path)
        sync_folder(temporary)
        crash_point("synced")
        temporary.rename(folder)
        sync_folder(self.store)
        crash_point("stored")
        return folder

    # 4. Does it work here
    def run_self_test(self, folder: Path) -> checking.Found:
        """Run the self-test, a few times at most where it ends the agent or the device."""
        previous = self.memory["tests"] if self.memory["tests"].get("package") == folder.name else {}
        count = previous.get("count", 0) + 1
        if count > TRIES:
            return checking.FAILED, "its self-test ended the agent", {}
        self.remember(tests={"package": folder.name, "count": count})
        crash_point("testing")
        result = checking.self_test(folder, self.root)
        self.remember(tests={})
        return result

    def time_once(self) -> None:
        """Measure the response times of the installed package once; at most three attempts where that ends the agent.

        What comes of it is for people to look at: no package is refused for it.
        """
        previous = self.memory["speed"] if self.memory["speed"].get("package") == self.installed else {}
        if not self.installed or previous.get("tried", 0) >= TRIES or previous.get("done"):
            return
        speed: Json = {"package": self.installed, "tried": previous.get("tried", 0) + 1}
        self.remember(speed=speed)
        crash_point("timing")
        command = [sys.executable, str(Path(sys.argv[0]).resolve()), "_time", str(self.current.resolve())]
        try:
            process = subprocess.run(command, timeout=TIME_S, capture_output=True, check=False)
            times = json.loads(process.stdout)
            self.remember(speed={**times, **speed, "done": True})
        except (OSError, subprocess.TimeoutExpired, ValueError, TypeError):
            self.remember(speed=speed | {"done": True})

    # 5. Use it, 6. or go back
    def switch(self, folder: Path) -> None:
        self.remember(trial=folder.name, tries=0)
        crash_point("trial")
        if self.current.is_symlink() and self.installed != folder.name:
            point(self.previous, self.current.resolve())
            crash_point("previous")
        point(self.current, folder)
        crash_point("switched")

    def go_back(self, sha: str) -> None:
        """Use the package before a bad one; a kill in between is made good by the next round."""
        self.remember(bad=sorted({*self.memory["bad"], sha}))
        crash_point("bad")
        if self.installed == sha and self.previous.is_symlink() and self.previous.resolve().is_dir():
            point(self.current, self.previous.resolve())
        elif self.installed == sha:
            self.current.unlink()
        crash_point("back")
        self.remember(trial="")

    def step(self) -> tuple[str, str]:
        """Run one round and return a code for the server and a detail."""
        if self.installed in self.memory["bad"]:  # died while it went back
            self.go_back(self.installed)
            return "rolled_back", "it ended while it went back"
        if self.memory["trial"] and self.memory["trial"] == self.installed:  # died while it was tried
            return self.finish_trial()
        if self.memory["trial"]:  # died before it was in use
            self.remember(trial="")
        release = self.fetch_release()
        if release.get("samples") != self.memory["samples"]:
            self.remember(samples=release.get("samples"))
            if self.samples:
                self.samples.follow(self.memory["samples"])
        package = release["package"]
        if package is None:
            return "nothing_wanted", ""
        sha = str(package["sha256"])
        if self.installed == sha:
            return "same", ""
        if sha in self.memory["bad"]:
            return "bad_package", "it failed here before"
        if missing := [name for name in NEEDS if importlib.util.find_spec(name) is None]:
            return "needs_packages", f"pip install onnxruntime numpy pillow ({', '.join(missing)} missing)"
        folder = self.store / sha
        if not folder.exists():
            folder = self.unpack(self.download(sha, int(package["size"])), sha)
        code, error, self.differs = self.run_self_test(folder)
        if code:
            self.remember(bad=sorted({*self.memory["bad"], sha}))
            drop(folder)
            return code, error
        crash_point("tested")
        self.switch(folder)
        return self.finish_trial()

    def finish_trial(self) -> tuple[str, str]:
        sha = self.memory["trial"]
        self.remember(tries=self.memory["tries"] + 1)
        if self.memory["tries"] > TRIES:
            wrong = "it ended the agent"
        else:
            wrong = self.front.start(self.current) if self.front else ""
        if wrong:
            self.go_back(sha)
            return "rolled_back", wrong
        self.remember(trial="")
        crash_point("healthy")
        keep = {sha, self.previous.resolve().name if self.previous.is_symlink() else ""}
        for old in self.store.iterdir():
            if old.name not in keep:
                drop(old)
        (self.parts / sha).unlink(missing_ok=True)
        return "updated", ""

    def round(self) -> tuple[str, str]:
        """Look once what should run here, do it, and tell the server."""
        self.differs = {}
        try:
            outcome = self.step()
        except Refused as why:
            outcome = why.code, str(why)
        except urllib.error.HTTPError as why:
            outcome = ("revoked", "") if why.code == 401 else ("server_refused", f"{why.code} {why.reason}"[:300])
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as why:
            outcome = "offline", str(why)[:300]
        except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile) as why:
            outcome = "later", f"{type(why).__name__}: {why}"[:300]
        if self.front and not self.front.running and self.installed:
            wrong = self.front.start(self.current)
            if wrong and outcome[0] in ("same", "updated"):
                outcome = "not_running", wrong
        if outcome[0] in ("same", "updated"):
            self.time_once()
        if outcome[0] not in ("offline", "revoked"):
            self.send_samples()
        if outcome != self.last_outcome:
            self.diary.add(" ".join(outcome))
            self.last_outcome = outcome
        if self.samples and self.samples.state != self.logged_samples_state:
            self.logged_samples_state = self.samples.state
            self.diary.add(samples.SAYS[self.logged_samples_state])
        self.report(*outcome)
        return outcome

    def send_samples(self) -> None:
        """Send what was kept, the oldest first; a picture goes from the disk once the server has it, or never takes it.

        A server that has it already says the same, so it matters not at which moment this ends.
        """
        if self.samples is None or self.samples.state != samples.ON:
            return
        for path in self.samples.list_stored()[:SENT_AT_ONCE]:
            try:
                body, kind = samples.form(*samples.read(path))
                crash_point("sending")
                self.open_url("samples", body=body, headers={"Content-Type": kind}).close()
                crash_point("sent")
            except urllib.error.HTTPError as exc:
                if exc.code not in NEVER_TAKEN:
                    return  # no room now, or not from us
            except (OSError, HTTPException):
                return
            except (ValueError, LookupError, TypeError):
                pass  # a damaged file
            path.unlink(missing_ok=True)

    def report(self, outcome: str, detail: str) -> None:
        """Report the state and unsent log lines to the server; best effort, earlier states are not repeated."""
        lines = self.diary.lines_after(self.memory["told"])
        body = {
            "outcome": outcome, "detail": detail[:300], "differs": self.differs,
            "package": self.installed, "number": self.memory["release"][1],
            "free_bytes": shutil.disk_usage(self.root).free, "counters": self.front.counters() if self.front else {},
            "hardware": hardware(), "speed": self.memory["speed"], "agent": VERSION,
            "samples": self.samples.state if self.samples else samples.OFF, "log": lines,
        }  # fmt: skip
        with contextlib.suppress(OSError, HTTPException):
            self.open_url("report", body=body).close()
            crash_point("reported")
            if lines:
                self.diary.sent(lines)
                self.remember(told=lines[-1][0])
