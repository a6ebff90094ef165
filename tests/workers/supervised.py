"""Processes below a real supervisor, as tests of it start them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.running import wait_for as until
from workers.supervisor import processes, records, tiers
from workers.supervisor.ticket import Ticket

MAIN = Path(records.__file__).with_name("__main__.py")


BEST, BWRAP = tiers.best_tier()
UID = 299_998


PYTHON = sys.executable
#: A supervisor with shorter times of the command watch; argument 2 maps constants to seconds.
WITH_TIMES = """
import json, sys
sys.path.insert(0, sys.argv[3])
from workers.supervisor import command_watch, daemon
vars(command_watch).update(json.loads(sys.argv[2]))
sys.exit(daemon.main(sys.argv[:2]))
"""


class Run:
    """A run directory with a supervisor.

    Args:
        watch_times: seconds by the name of a constant of `command_watch`, instead of the values there.
        more: fields of the ticket.
    """

    def __init__(
        self, path: Path, tier: int, argv: list[str], *, watch_times: dict[str, float] | None = None, **more
    ) -> None:
        self.path = path
        self.watch_times = watch_times
        for name in ("code", "outputs", "tmp"):
            (path / name).mkdir(parents=True)
        env = {"PATH": "/usr/bin:/bin", "RUN": str(path)} | more.pop("env", {})
        ticket = Ticket(
            job=1, attempt=1, argv=argv, env=env, cwd=str(path / "code"),
            tier=tier, bwrap=BWRAP if tier >= 2 else "", tmp=str(path / "tmp"),
            read_only=[*map(str, tiers.python_folders()), str(path), *more.pop("read_only", [])],
            read_write=[str(path / "code"), str(path / "outputs")], **({"uid": UID} if tier == 3 else {}) | more,
        )  # fmt: skip
        records.write(path / records.LAUNCH, ticket.to_json())

    def start(self) -> int:
        command = [PYTHON, "-I", "-S", str(MAIN), str(self.path)]
        if self.watch_times:
            times = json.dumps(self.watch_times)
            command = [PYTHON, "-I", "-S", "-c", WITH_TIMES, str(self.path), times, str(MAIN.parents[2])]
        return subprocess.run(command, check=False, timeout=90).returncode

    def wish(self, word: str) -> None:
        records.write_request(self.path, word)

    def exit(self) -> dict:
        return until(lambda: records.read(self.path / records.EXIT))

    def state(self) -> str:
        return (records.read(self.path / records.STATUS) or {}).get("state", "")

    def log(self) -> str:
        return (self.path / records.LOG).read_text()

    @property
    def supervisor(self) -> dict:
        return records.read(self.path / records.SUPERVISOR) or {}

    def programs(self) -> list[int]:
        """Processes that carry this run's mark, wherever they hang in the tree."""
        mark = f"RUN={self.path}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return processes.alive(found)
