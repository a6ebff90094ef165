"""What a killed run leaves: network namespaces and database folders. Its processes end with it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def sweep(older_s: float = 3 * 3600.0) -> list[str]:
    """Remove what runs left that were killed: old namespaces without a process in them, bridges, dead databases."""
    gone = []

    def old(path: Path) -> bool:
        return time.time() - path.stat().st_mtime > older_s

    for path in Path("/run/netns").glob("aip????n*"):
        with contextlib.suppress(FileNotFoundError):  # another run sweeps beside us
            inside = subprocess.run(["ip", "netns", "pids", path.name], capture_output=True, check=False)
            if old(path) and not inside.returncode and not inside.stdout.strip():
                _ip("netns", "del", path.name)  # its cable goes with it
                _ip("link", "del", f"{path.name.partition('n')[0]}br")
                gone.append(path.name)
    for folder in Path(tempfile.gettempdir()).glob("aip-pg-*"):
        with contextlib.suppress(OSError, ValueError):
            pids = [int(path.read_text().split()[0]) for path in folder.glob("*/postmaster.pid")]
            if old(folder) and not any(Path(f"/proc/{pid}").exists() for pid in pids):
                shutil.rmtree(folder, ignore_errors=True)
                gone.append(folder.name)
    return gone


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=False)
