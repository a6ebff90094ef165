"""Container engines to run jobs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fakes import engine as fake
from tests.running import wait_for as until
from workers.supervisor.engine import Engine, Unanswered


class FakeEngine:
    """The small engine as a process of its own."""

    python, uid = sys.executable, 0

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder / "boxes", folder / "engine.sock"
        self.folder.mkdir(parents=True)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-I", "-S", fake.__file__, str(self.socket), str(self.folder), "image"]
        self.process = subprocess.Popen(command)
        until(self.answers)

    def answers(self) -> bool:
        try:
            return bool(Engine(str(self.socket)).ask("GET", "/version"))
        except Unanswered:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def about(self) -> dict[str, str]:
        return {"engine": str(self.socket), "image": "image", "user": "0:0", "network": "none", "root": "/test"}
