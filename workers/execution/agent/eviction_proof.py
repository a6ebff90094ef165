"""Eviction proof on a real card: train, evict, let another program have the card, bring back, compare every loss.

The training runs under a real supervisor in the machine's own isolation tier. It is proven where the card's memory was
free meanwhile, another program could fill it, and all losses equal those of an undisturbed run to the last bit.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.execution import job_users, tickets
from workers.machines.telemetry.probe import Card, Probe
from workers.models import Device
from workers.supervisor import __file__ as supervisor_init
from workers.supervisor import cuda_checkpoint, processes, records, sandbox, tiers
from workers.supervisor.ticket import Ticket

SUPERVISOR = Path(supervisor_init).with_name("__main__.py")
STEPS, EVICT_AT = 400, 100
BALLAST_MIB = 1024
LEFT_MIB = 64  # what may still count as held when the program is off the card
WAIT_S = 300.0
# Trains a small network with a ballast of known numbers beside it; prints each loss as its exact bits.
TRAINING = """
import os, pathlib, sys, time
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
torch.use_deterministic_algorithms(True)
torch.manual_seed(7)
ballast = torch.arange(int(sys.argv[1]) * 262144, dtype=torch.int32, device="cuda")
net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(int(sys.argv[2])):
    x = torch.randn(128, 256, device="cuda")
    loss = torch.nn.functional.mse_loss(net(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", step, loss.item().hex(), flush=True)
    time.sleep(0.01)
whole = bool((ballast == torch.arange(len(ballast), dtype=torch.int32, device="cuda")).all())
print("ballast", "whole" if whole else "broken", flush=True)
"""
# Fills most of what the card has free, and says how much that was. It looks in pieces: a sum of all of it would first
# make a copy, eight times as large.
FILLING = """
import torch
free, total = torch.cuda.mem_get_info()
held = torch.ones(int(free * 0.8), dtype=torch.uint8, device="cuda")
whole = all(bool((piece == 1).all()) for piece in held.split(1 << 28))
print("filled", whole, len(held) >> 20, total >> 20, flush=True)
"""


class Failed(Exception):
    """The proof did not hold; the message says where."""


@dataclass(frozen=True)
class Proof:
    """What was seen, with figures: MiB of the card, seconds each way."""

    held_mib: float
    freed_mib: float
    filled_mib: int
    out_s: float
    back_s: float
    steps: int


def prove(probe: Probe, card: Card, *, folder: Path, library: str = cuda_checkpoint.LIBRARY) -> Proof:
    """Run the proof on a card that nobody uses; takes a minute or two.

    Args:
        folder: where the runs may be kept meanwhile; it is emptied again.
        library: the driver's.

    Raises:
        Failed: it did not hold.
    """
    home = Path(tempfile.mkdtemp(prefix="eviction-proof-", dir=folder))
    runs: list[_Run] = []
    try:
        plain = _begin(home / "plain", card, TRAINING, library, runs)
        undisturbed = plain.losses_at_end()
        used_before = _used(probe, card)
        moved = _begin(home / "moved", card, TRAINING, library, runs)
        moved.until(lambda: len(moved.losses()) >= EVICT_AT, "the training does not get on")
        held = _used(probe, card) - used_before
        begun = time.monotonic()
        moved.request("evict")
        moved.until(lambda: moved.status().get("state") in ("evicted", "kept"), "the driver does not let it leave")
        out_s = time.monotonic() - begun
        if moved.status()["state"] == "kept":
            raise Failed(f"it could not leave the card: {moved.status().get('why')}")
        steps = len(moved.losses())
        _wait(lambda: _used(probe, card) - used_before < LEFT_MIB, 30, "the card's memory is not free")
        freed = held - (_used(probe, card) - used_before)
        other = _begin(home / "other", card, FILLING, library, runs)
        other.ended()
        words = other.log().split()
        if "filled" not in words or words[words.index("filled") + 1] != "True":
            raise Failed(f"another program could not use the card: {other.log()[-300:]}")
        if len(moved.losses()) != steps:
            raise Failed("it went on while it was off the card")
        begun = time.monotonic()
        moved.request("run")
        moved.until(lambda: moved.status().get("state") == "running", "it does not come back onto the card")
        back_s = time.monotonic() - begun
        losses = moved.losses_at_end()
        if losses != undisturbed:
            same = sum(mine == theirs for mine, theirs in zip(losses, undisturbed, strict=False))
            raise Failed(f"{same} of {len(undisturbed)} losses are equal; it was moved after step {steps}")
        filled = int(words[words.index("filled") + 2])
        return Proof(held, freed, filled, round(out_s, 2), round(back_s, 2), len(losses))
    finally:
        for run in runs:
            run.kill()
        shutil.rmtree(home, ignore_errors=True)


class _Run:
    """A program under a supervisor, with the ticket the platform would write."""

    def __init__(self, path: Path, card: Card, program: str, library: str) -> None:
        self.path = path
        for name in ("code", "outputs", "tmp"):
            (path / name).mkdir(parents=True)
        level, bwrap = tickets.tier()
        row = Device(kind=Device.Kind.GPU, index=card.index, uuid=card.uuid, memory_mib=card.memory_mib)
        ticket = Ticket(
            job=0, attempt=0, argv=[sys.executable, "-c", program, str(BALLAST_MIB), str(STEPS)],
            env={
                "PATH": "/usr/bin:/bin", "HOME": str(path / "tmp"),
                "CUDA_VISIBLE_DEVICES": card.uuid or str(card.index),
                "AIP_OUTPUT_DIR": str(path / "outputs"),
            },
            cwd=str(path / "code"), tier=level, bwrap=bwrap, tmp=str(path / "tmp"),
            uid=job_users.uid_of(0) if level >= sandbox.BUBBLEWRAP else 0,
            read_only=[*map(str, tiers.python_folders()), str(path)],
            read_write=[str(path / "code"), str(path / "outputs")], devices=tickets.device_files([row]),
            libcuda=library,
        )  # fmt: skip
        records.write(path / records.LAUNCH, ticket.to_json())
        command = [sys.executable, "-I", "-S", str(SUPERVISOR), str(path)]
        started = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)  # noqa: S603 - our own program and paths of ours
        if started.returncode:
            raise Failed(f"the supervisor did not start: {started.stderr.strip()[-300:]}")

    def request(self, word: str) -> None:
        records.write_request(self.path, word)

    def status(self) -> dict[str, Any]:
        return records.read(self.path / records.STATUS) or {}

    def log(self) -> str:
        return (self.path / records.LOG).read_text(errors="replace")

    def losses(self) -> list[str]:
        """Exact bits of the loss of every step so far."""
        lines = (line.split() for line in self.log().splitlines())
        return [words[2] for words in lines if len(words) == 3 and words[0] == "loss"]

    def until(self, what: Callable[[], bool], otherwise: str) -> None:
        _wait(lambda: what() or (self.path / records.EXIT).exists(), WAIT_S, otherwise)
        if not what():
            raise Failed(f"{otherwise}: {self.log()[-300:]}")

    def ended(self) -> None:
        """Wait for its end.

        Raises:
            Failed: it did not end well.
        """
        _wait((self.path / records.EXIT).exists, WAIT_S, "the program does not end")
        if (records.read(self.path / records.EXIT) or {}).get("code") != 0:
            raise Failed(f"a program of the proof failed: {self.log()[-300:]}")

    def losses_at_end(self) -> list[str]:
        self.ended()
        if "ballast whole" not in self.log():
            raise Failed("numbers on the card changed")
        return self.losses()

    def kill(self) -> None:
        kept = records.read(self.path / records.SUPERVISOR)
        if kept and records.is_alive(kept):
            processes.send([*processes.descendants(kept["pid"]), kept["pid"]], signal.SIGKILL)


def _begin(path: Path, card: Card, program: str, library: str, runs: list[_Run]) -> _Run:
    runs.append(_Run(path, card, program, library))
    return runs[-1]


def _used(probe: Probe, card: Card) -> float:
    found = next((one.memory_used_mib for one in probe.read() if one.index == card.index), None)
    if found is None:
        raise Failed("the card does not say how much of its memory is used")
    return found


def _wait(what: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise Failed(otherwise)
        time.sleep(0.1)
