"""The platform's own processes on this machine, and its disks, from /proc."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)
TICKS_S = os.sysconf("SC_CLK_TCK")
MAX_PROCESSES = 200
#: One of these stands in the command line of each of our processes; most others are passed over by that alone.
_MARKS = (b"valkey-server", b"redis-server", b"aiplatform", b"manage.py", b"celery", b"supervisor/")


@dataclass(frozen=True, slots=True)
class Service:
    """One process. `run` is a supervisor's run directory, so that its job can be named."""

    name: str
    pid: int
    memory_mib: float
    up_s: float
    run: str = ""


def services(root: Path, proc: Path = Path("/proc")) -> list[dict[str, Any]]:
    """The platform's processes here, at most 200, by name; JSON-ready.

    Args:
        root: the platform's data folder; another platform on the same machine is not ours.
    """
    wanted = _absolute(os.environ.get("AIP_DATA_ROOT", ""), Path.cwd())
    up_s = float((proc / "uptime").read_text().split()[0])
    rows: list[Service] = []
    for entry in proc.iterdir():
        if not entry.name.isdigit() or len(rows) >= MAX_PROCESSES:
            continue
        try:
            line = (entry / "cmdline").read_bytes()
            if not any(mark in line for mark in _MARKS):
                continue
            name, run = identify(line.decode(errors="replace").split("\0")[:-1])
            if not name or (run and not Path(run).is_relative_to(root)):
                continue
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            # the broker writes its title over its environment; who started it still has one
            if not run and _root(proc / fields[1] if name == "broker" else entry) != wanted:
                continue
            resident = int((entry / "statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):  # ended meanwhile, or not ours to read
            continue
        started_s = int(fields[19]) / TICKS_S
        rows.append(
            Service(name, int(entry.name), round(resident * PAGE_MIB, 1), round(max(0.0, up_s - started_s)), run)
        )
    return [asdict(service) for service in sorted(rows, key=lambda item: (item.name, item.pid))]


def identify(argv: list[str]) -> tuple[str, str]:
    """(what a process of the platform is, a supervisor's run directory); ("", "") for any other process."""
    program = Path(argv[0].partition(" ")[0]).name if argv else ""
    rest = argv[1:]
    if program in {"valkey-server", "redis-server"}:
        return "broker", ""
    if "aiplatform.asgi:application" in rest:
        return "web", ""
    for before, word in zip(argv, rest, strict=False):
        if before.endswith("manage.py") and word in {"agent", "exec_relay", "scheduler", "up", "join"}:
            return word, ""
        if word == "aiplatform.cli.fork_server":
            return "fork server", ""
        if before == "--hostname" and "celery" in rest:
            return word.partition("@")[0], ""
        if before.endswith("supervisor/__main__.py"):
            return "supervisor", word
        if word.endswith("supervisor/fork_server.py"):
            return "fork server", ""
    return "", ""


def _root(entry: Path) -> str:
    """The `AIP_DATA_ROOT` a process was started with, "" without one."""
    for pair in (entry / "environ").read_bytes().split(b"\0"):
        if pair.startswith(b"AIP_DATA_ROOT="):
            return _absolute(pair.partition(b"=")[2].decode(errors="replace"), entry / "cwd")
    return ""


def _absolute(folder: str, start: Path) -> str:
    """A folder as the settings understand it, from where the process works; "" stays."""
    return str((start / Path(folder).expanduser()).resolve()) if folder else ""


def disks(mounts: Path = Path("/proc/mounts")) -> list[dict[str, Any]]:
    """Local block devices with room and use: [{"path", "free_bytes", "total_bytes"}].

    File systems of other machines are left out: asking one that hangs would hang the agent.
    """
    rows: dict[str, dict[str, Any]] = {}
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        device, _, rest = line.partition(" ")
        path = rest.split(" ", 1)[0].replace("\\040", " ")
        if not device.startswith("/dev/") or device in rows or not Path(path).is_dir():
            continue
        try:
            usage = os.statvfs(path)
        except OSError:
            continue
        if usage.f_blocks:
            rows[device] = {
                "path": path,
                "free_bytes": usage.f_bavail * usage.f_frsize,
                "total_bytes": usage.f_blocks * usage.f_frsize,
            }
    return list(rows.values())[:20]
