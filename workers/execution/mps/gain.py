"""What MPS gains on a card: the steps that several programs make together, taking turns and through a daemon.

Each program runs as a job would: below a supervisor, in this machine's sandbox, with an equal share of the card. So it
also shows that MPS and the sandbox go together here.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workers.execution import job_users, supervisors, tickets
from workers.execution.mps.daemon import Daemon, Unavailable
from workers.machines.telemetry.probe import Card
from workers.models import Device
from workers.supervisor import processes, records, sandbox, tiers
from workers.supervisor.ticket import Ticket

OWNER = 0
"""The daemon of measurements: no person has this number."""
MOST = 8  # a card has so many shares
WAIT_S = 120.0
#: Small kernels that leave most of a card idle, as a training of a small model does.
STEPS = """
import pathlib, sys, time, torch
a = torch.randn(192, 192, device="cuda")
for _ in range(50):
    a = torch.tanh(a @ a)
torch.cuda.synchronize()
print("ready", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
steps, until = 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    for _ in range(100):
        a = torch.tanh(a @ a)
    torch.cuda.synchronize()
    steps += 100
print("steps", steps, flush=True)
"""


class Failed(Exception):
    """Nothing was measured; the message says why."""


@dataclass(frozen=True)
class Gain:
    """Steps per second of all programs together: taking turns (`alone`), and by MPS (`together`)."""

    clients: int
    alone: float
    together: float

    @property
    def ratio(self) -> float:
        return self.together / self.alone if self.alone else 0.0


def measure(card: Card, *, clients: int, seconds: float, folder: Path, program: str = STEPS) -> Gain:
    """Measure on a card that nobody uses; takes twice `seconds` and the start of the programs.

    Args:
        clients: how many programs share the card, 2 to 8.
        folder: where the runs are kept meanwhile; it is emptied again.
        program: says "ready", waits for the file in its first argument, computes for as many seconds as its second
            says, and prints "steps N".

    Raises:
        Failed: a program did not run, or none became a client of MPS.
    """
    if not 2 <= clients <= MOST:
        raise Failed(f"2 to {MOST} programs can share a card")
    home = Path(tempfile.mkdtemp(prefix="mps-gain-", dir=folder))
    home.chmod(0o755)
    try:
        alone = together(home / "alone", card, clients, seconds, program, None)
        with daemon_for(card) as daemon:
            by_mps = together(home / "together", card, clients, seconds, program, daemon)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return Gain(clients, round(alone, 1), round(by_mps, 1))


@contextlib.contextmanager
def daemon_for(card: Card) -> Iterator[Daemon]:
    """A daemon for this card alone, ended afterwards.

    Raises:
        Failed: it does not start.
    """
    daemon, (tier, bwrap) = Daemon(OWNER), tickets.tier()
    try:
        with daemon.locked():
            daemon.end()  # one that an earlier measurement left
            daemon.ensure(_uid(), [card.uuid], bwrap if tier >= sandbox.BUBBLEWRAP else "")
        yield daemon
    except Unavailable as why:
        raise Failed(str(why)) from why
    finally:
        with daemon.locked():
            daemon.end()


def together(home: Path, card: Card, clients: int, seconds: float, program: str, daemon: Daemon | None) -> float:
    """Let the programs compute at the same time; their steps per second together.

    Args:
        daemon: they are its clients; None: they take turns.

    Raises:
        Failed: one did not run, or is no client.
    """
    runs = []
    try:
        for number in range(clients):
            runs.append(_begin(home / str(number), card, clients, seconds, program, daemon))  # noqa: PERF401 - those that began are ended below
        for run in runs:
            _until(run, lambda run=run: "ready" in _log(run), "a program does not begin")  # type: ignore[misc]  # bound now
        known = daemon.programs() if daemon else None
        if daemon and len(known or []) < clients:
            raise Failed(f"{len(known or [])} of {clients} programs became clients of MPS; see {daemon.log}")
        for run in runs:
            (run / "inputs" / "go").touch()
        for run in runs:
            _until(run, (run / records.EXIT).exists, "a program does not end", seconds + WAIT_S)
        return sum(_steps(run) for run in runs) / seconds
    finally:
        for run in runs:
            kept = records.read(run / records.SUPERVISOR)
            if kept and records.is_alive(kept):
                processes.send([*processes.descendants(kept["pid"]), kept["pid"]], signal.SIGKILL)


def _begin(path: Path, card: Card, clients: int, seconds: float, program: str, daemon: Daemon | None) -> Path:
    """Start one program under a supervisor; its run directory."""
    for name in ("code", "inputs", "outputs", "tmp"):
        (path / name).mkdir(parents=True)
    level, bwrap = tickets.tier()
    row = Device(kind=Device.Kind.GPU, index=card.index, uuid=card.uuid, memory_mib=card.memory_mib)
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(path / "tmp"),
        "CUDA_VISIBLE_DEVICES": card.uuid,
        "AIP_OUTPUT_DIR": str(path / "outputs"),
    }
    if daemon:
        environ |= {
            "CUDA_MPS_PIPE_DIRECTORY": str(daemon.pipe),
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{100 / clients:g}",
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={card.memory_mib // clients}M",
        }
    ticket = Ticket(
        job=0, attempt=0, argv=[sys.executable, "-c", program, str(path / "inputs" / "go"), str(seconds)], env=environ,
        cwd=str(path / "code"), tier=level, bwrap=bwrap, tmp=str(path / "tmp"), uid=_uid(),
        read_only=[*map(str, tiers.python_folders()), str(path)],
        read_write=[str(path / "code"), str(path / "outputs"), *([str(daemon.pipe)] if daemon else [])],
        shm=str(daemon.shm) if daemon and level >= sandbox.BUBBLEWRAP else "",
        devices=tickets.device_files([row]),
    )  # fmt: skip
    records.write(path / records.LAUNCH, ticket.to_json())
    try:
        supervisors.start(path)
    except (supervisors.NoAnswer, supervisors.NoRoom, supervisors.SupervisorFailed) as exc:
        raise Failed(f"a supervisor did not start: {exc}") from exc
    return path


def _uid() -> int:
    """The user of the programs: one of jobs' where the sandbox lets it get to its files, else the platform's own."""
    return job_users.uid_of(OWNER) if tickets.tier()[0] >= sandbox.BUBBLEWRAP else 0


def _log(run: Path) -> str:
    try:
        return (run / records.LOG).read_text(errors="replace")
    except OSError:
        return ""


def _until(run: Path, what: Callable[[], bool], otherwise: str, limit_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not what():
        if (run / records.EXIT).exists() or time.monotonic() > deadline:
            if what():
                return
            raise Failed(f"{otherwise}: {_log(run)[-300:]}")
        time.sleep(0.02)


def _steps(run: Path) -> float:
    words = _log(run).split()
    if "steps" not in words or (records.read(run / records.EXIT) or {}).get("code") != 0:
        raise Failed(f"a program failed: {_log(run)[-300:]}")
    return float(words[words.index("steps") + 1])
