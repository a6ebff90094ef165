"""A device with the agent on it, as it is installed; and what tests ask of it and of its row."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inference.delivery.edge import agent_download, fleet
from inference.delivery.edge.device.about import gradient_png
from tests.running import free_port


class Device:
    """A device with the agent on it."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder, self.server, self.root = folder, server, folder / "root"
        folder.mkdir(parents=True)
        self.file = folder / agent_download.NAME
        self.file.write_bytes(agent_download.agent())
        self.port = free_port()

    def command(self, *args: str) -> list[str]:
        return [sys.executable, str(self.file), "--root", str(self.root), *args]

    def enrol(self, code: str) -> subprocess.CompletedProcess[str]:
        return self.ran("enrol", "--server", self.server, "--code", code)

    def ran(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **env}
        return subprocess.run(self.command(*args), env=own, capture_output=True, text=True, timeout=120, check=False)

    def round(self, *args: str, **env: str) -> str:
        """One look at the server; gives its outcome, or the signal that ended it."""
        done = self.ran("run", "--once", "--port", "0", *args, **env)
        return done.stdout.split()[2] if done.returncode == 0 else f"died {done.returncode}: {done.stderr[-500:]}"

    @property
    def installed(self) -> str:
        link = self.root / "current"
        return link.resolve().name if link.is_symlink() else ""

    def is_whole(self) -> bool:
        """Whether what is installed is a package all of whose sums are right."""
        folder = (self.root / "current").resolve()
        done = subprocess.run(
            ["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, capture_output=True, check=False
        )
        return done.returncode == 0


def released(group: Any, version: Any, by: Any, share: int = 100) -> str:
    """Release a version to a group; gives the sum of its package."""
    group.refresh_from_db()
    return fleet.release(group=group, version=version, share=share, by=by).wanted.sha256


def row(group: Any) -> Any:
    """The first device of a group, as the platform knows it."""
    return group.devices.get(name="gate-1")


def wait_for(what: Callable[[], Any], seconds: float = 60) -> Any:
    """What `what` gives once it gives something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come")


def predict(port: int, body: bytes = b"") -> Any:
    """Return the prediction of a device's model for an image."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/predict", body or gradient_png())
        answer = connection.getresponse()
        assert answer.status == 200
        return json.loads(answer.read())
    finally:
        connection.close()
