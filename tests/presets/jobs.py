"""A run directory and a preset started in it, as the platform does it, without the platform."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import training.presets
from tests import job_forks, ports

#: Starts a module once per rank, as torchrun does, without a process that imports torch and trains nothing.
RANKS = """
import os, subprocess, sys
world, port, module = sys.argv[1:]
common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": world}
ranks = [
    subprocess.Popen([sys.executable, "-m", module], env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
    for rank in range(int(world))
]
while all(rank.poll() is None for rank in ranks):
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
if any(rank.returncode for rank in ranks):
    for rank in ranks:
        rank.terminate()
sys.exit(max(rank.wait() for rank in ranks))
"""
SOURCE = Path(training.presets.__file__).parent


class Job:
    """One attempt: its folders, its environment, its command.

    Args:
        forked: it may be a fork of a process that has imported torch; else it gets an interpreter of its own.
    """

    def __init__(
        self,
        root: Path,
        version: Path,
        module: str,
        params: dict[str, Any],
        *,
        threads: int = 1,
        ranks: int = 1,
        forked: bool = True,
    ) -> None:
        self.forked = forked
        self.root, self.code = root, root / "code"
        self.metrics, self.control = root / "metrics.jsonl", root / "control"
        self.checkpoints, self.outputs = root / "checkpoints", root / "outputs"
        shutil.copytree(SOURCE, self.code / "presets", dirs_exist_ok=True)  # with bytecode, which times of files seal
        (root / "params.json").write_text(json.dumps(params))
        start = [sys.executable, "-m", f"presets.{module}"]
        if ranks > 1:
            start = [sys.executable, "-S", "-c", RANKS, str(ranks), str(ports.own().free()), f"presets.{module}"]
        self.argv = start
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AIP_", "PYTHONPATH"))},
            "AIP_DATASET_DIR": str(version),
            "AIP_OUTPUT_DIR": str(self.outputs),
            "AIP_CHECKPOINT_DIR": str(self.checkpoints),
            "AIP_RESUME_FROM": "",
            "AIP_PARAMS": str(root / "params.json"),
            "AIP_METRICS_FILE": str(self.metrics),
            "AIP_CONTROL_FILE": str(self.control),
            "AIP_CACHE_DIR": str(root.parent / f"cache-{version.name}"),
            "OMP_NUM_THREADS": str(threads),
            "OMP_WAIT_POLICY": "PASSIVE",
            "AIP_STARTED_AT": "",
        }

    def start(self) -> subprocess.Popen[str] | job_forks.Program:
        """Start it; its log comes through stdout, and it runs at most a few lines ahead of who reads them.

        A pipe holds hundreds of lines: a reader who was kept waiting would then find a short job already over.
        """
        ours, theirs = socket.socketpair()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        with ours, theirs:
            process: subprocess.Popen[str] | job_forks.Program
            if self.forked and job_forks.can_fork(self.argv, self.env):
                process = job_forks.start(self.argv, cwd=self.code, env=self.env, output=theirs.fileno())
            else:
                process = subprocess.Popen(
                    self.argv, cwd=self.code, env=self.env, text=True, stdout=theirs, stderr=subprocess.STDOUT
                )
            process.stdout = ours.makefile("r")
        return process

    def run(self) -> tuple[int, str]:
        """Run it to its end: exit code and log."""
        with self.start() as process:
            log, _ = process.communicate()
        return process.returncode, log

    def request(self, command: str) -> None:
        """Write the control file as the platform does, by rename."""
        fresh = self.control.with_suffix(".new")
        fresh.write_text(command)
        fresh.replace(self.control)

    def curve(self, key: str) -> list[float]:
        """All values of one figure, in order."""
        lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        return [line[key] for line in lines if key in line]
