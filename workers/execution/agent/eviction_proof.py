"""Eviction proof on a real card: train, evict, let another program have the card, bring back, compare every loss.

The training runs under a real supervisor in the machine's own isolation tier. It is proven where the card's memory was
free meanwhile, another program could fill it, and all losses equal those of an undisturbed run to the last bit.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workers.execution.measurement_jobs import Failed, MeasurementJob
from workers.resources.nodes.telemetry.probe import Card, Probe
from workers.supervisor import cuda_checkpoint

STEPS, EVICT_AT = 400, 100
BALLAST_MIB = 1024
LEFT_MIB = 64  # what may still count as held when the program is off the card
WAIT_S = 300.0
MAX_RUNTIME_S = 900.0  # after which a program ends by itself, also where the proof was killed
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
    """Run the proof on an unused GPU; takes one to two minutes.

    Args:
        folder: where the runs may be kept meanwhile; it is emptied again.
        library: the driver's.

    Raises:
        Failed: it did not hold.
    """
    home = Path(tempfile.mkdtemp(prefix="eviction-proof-", dir=folder))
    runs: list[_Training] = []
    try:
        plain = _start(home / "plain", card, TRAINING, library, runs)
        undisturbed = plain.losses_at_end()
        used_before = _used(probe, card)
        moved = _start(home / "moved", card, TRAINING, library, runs)
        moved.until(lambda: len(moved.losses()) >= EVICT_AT, "the training does not get on")
        held = _used(probe, card) - used_before
        started_at = time.monotonic()
        moved.request("evict")
        moved.until(lambda: moved.status().get("state") in ("evicted", "kept"), "the driver does not let it leave")
        out_s = time.monotonic() - started_at
        if moved.status()["state"] == "kept":
            raise Failed(f"it could not leave the card: {moved.status().get('why')}")
        steps = len(moved.losses())
        _wait(lambda: _used(probe, card) - used_before < LEFT_MIB, 30, "the card's memory is not free")
        freed = held - (_used(probe, card) - used_before)
        other = _start(home / "other", card, FILLING, library, runs)
        other.wait(WAIT_S)
        fields = other.log().split()
        if "filled" not in fields or fields[fields.index("filled") + 1] != "True":
            raise Failed(f"another program could not use the card: {other.log()[-300:]}")
        if len(moved.losses()) != steps:
            raise Failed("it went on while it was off the card")
        started_at = time.monotonic()
        moved.request("run")
        moved.until(lambda: moved.status().get("state") == "running", "it does not come back onto the card")
        back_s = time.monotonic() - started_at
        losses = moved.losses_at_end()
        if losses != undisturbed:
            same = sum(moved_loss == plain_loss for moved_loss, plain_loss in zip(losses, undisturbed, strict=False))
            raise Failed(f"{same} of {len(undisturbed)} losses are equal; it was moved after step {steps}")
        filled = int(fields[fields.index("filled") + 2])
        return Proof(held, freed, filled, round(out_s, 2), round(back_s, 2), len(losses))
    finally:
        for run in runs:
            run.kill()
        shutil.rmtree(home, ignore_errors=True)


class _Training(MeasurementJob):
    """A program of the proof, of which nothing but its losses and their end is looked at."""

    def __init__(self, path: Path, card: Card, program: str, library: str) -> None:
        argv = [sys.executable, "-c", program, str(BALLAST_MIB), str(STEPS)]
        super().__init__(path, argv, [card], max_runtime_s=MAX_RUNTIME_S, libcuda=library)

    def losses(self) -> list[str]:
        """Exact bits of the loss of every step so far."""
        lines = (line.split() for line in self.log().splitlines())
        return [fields[2] for fields in lines if len(fields) == 3 and fields[0] == "loss"]

    def until(self, what: Callable[[], bool], problem: str) -> None:
        self.wait_for(what, problem, WAIT_S)

    def losses_at_end(self) -> list[str]:
        self.wait(WAIT_S)
        if "ballast whole" not in self.log():
            raise Failed("numbers on the card changed")
        return self.losses()


def _start(path: Path, card: Card, program: str, library: str, runs: list[_Training]) -> _Training:
    runs.append(_Training(path, card, program, library))
    return runs[-1]


def _used(probe: Probe, card: Card) -> float:
    used_mib = next((reading.memory_used_mib for reading in probe.read() if reading.index == card.index), None)
    if used_mib is None:
        raise Failed("the card does not say how much of its memory is used")
    return used_mib


def _wait(what: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise Failed(otherwise)
        time.sleep(0.1)
