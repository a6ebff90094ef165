"""What MPS gains on a card: the steps that several programs make together, taking turns and through a daemon.

Each program runs as a job would: below a supervisor, in this machine's sandbox, with an equal share of the card. So it
also shows that MPS and the sandbox go together here.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workers.execution import measurement_jobs, tickets
from workers.execution.measurement_jobs import Failed, MeasurementJob
from workers.execution.mps.daemon import Daemon, Unavailable
from workers.resources.nodes.telemetry.probe import Card
from workers.supervisor import sandbox

MAX_SHARES = 8  # a card has so many shares
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
    """Measure on an unused GPU; takes twice `seconds` and the start of the programs.

    Args:
        clients: how many programs share the card, 2 to 8.
        folder: where the runs are kept meanwhile; it is emptied again.
        program: says "ready", waits for the file in its first argument, computes for as many seconds as its second
            says, and prints "steps N".

    Raises:
        Failed: a program did not run, or none became a client of MPS.
    """
    if not 2 <= clients <= MAX_SHARES:
        raise Failed(f"2 to {MAX_SHARES} programs can share a card")
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
    daemon, (tier, bwrap) = Daemon(measurement_jobs.OWNER), tickets.tier()
    try:
        with daemon.locked():
            daemon.end()  # one that an earlier measurement left
            daemon.ensure(measurement_jobs.job_user(tier), [card.uuid], bwrap if tier >= sandbox.BUBBLEWRAP else "")
        yield daemon
    except Unavailable as why:
        raise Failed(str(why)) from why
    finally:
        with daemon.locked():
            daemon.end()


def together(home: Path, card: Card, clients: int, seconds: float, program: str, daemon: Daemon | None) -> float:
    """Run the programs at the same time; return the sum of their steps per second.

    Args:
        daemon: they are its clients; None: they take turns.

    Raises:
        Failed: one did not run, or is no client.
    """
    runs: list[MeasurementJob] = []
    try:
        for number in range(clients):
            runs.append(_start(home / str(number), card, clients, seconds, program, daemon))  # noqa: PERF401 - those that began are ended below
        for run in runs:
            run.wait_for_line("ready", WAIT_S)
        members = daemon.programs() if daemon else None
        if daemon and len(members or []) < clients:
            raise Failed(f"{len(members or [])} of {clients} programs became clients of MPS; see {daemon.log}")
        for run in runs:
            (run.path / "inputs" / "go").touch()
        for run in runs:
            run.wait(seconds + WAIT_S)
        return sum(float(run.wait_for_line("steps", 0)[0]) for run in runs) / seconds
    finally:
        for run in runs:
            run.kill()


def _start(path: Path, card: Card, clients: int, seconds: float, program: str, daemon: Daemon | None) -> MeasurementJob:
    """Start one program on an equal share of the card."""
    argv = [sys.executable, "-c", program, str(path / "inputs" / "go"), str(seconds)]
    if daemon is None:
        return MeasurementJob(path, argv, [card], max_runtime_s=2 * WAIT_S + seconds)
    environ = {
        "CUDA_MPS_PIPE_DIRECTORY": str(daemon.pipe),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{100 / clients:g}",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={card.memory_mib // clients}M",
    }
    shm = str(daemon.shm) if tickets.tier()[0] >= sandbox.BUBBLEWRAP else ""
    return MeasurementJob(
        path, argv, [card], env=environ, read_write=[daemon.pipe], shm=shm, max_runtime_s=2 * WAIT_S + seconds
    )
