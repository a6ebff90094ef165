"""What only a card can prove: two jobs share it within their memory, a pause frees compute, a stop frees memory, and
evicted work comes back to the last bit.

`pytest -m gpu` on a machine with one NVIDIA GPU and a CUDA build of torch; skipped with a word elsewhere. Each job is a
real supervisor with the ticket the platform would write, so sandbox, device file and visible devices are the real ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.running import wait_for
from workers.execution import tickets
from workers.execution.agent import eviction_probe, eviction_proof
from workers.supervisor import cuda_checkpoint, processes, records, tiers
from workers.supervisor.ticket import Ticket

pytestmark = pytest.mark.gpu

MAIN = Path(records.__file__).with_name("__main__.py")
UID = 299_997
PYTHON = sys.executable
CONTEXT_MIB = 1200  # what CUDA itself takes per process, beside what torch allocates
# Takes memory in 64 MiB pieces until torch refuses, says how much it got, then computes until it is told to end.
GREEDY = """
import os, pathlib, torch
torch.cuda.set_per_process_memory_fraction(float(os.environ["AIP_GPU_MEMORY_FRACTION"]))
held = []
try:
    for _ in range(int(os.environ.get("PIECES", "100000"))):
        held.append(torch.ones(16 << 20, device="cuda"))
except torch.OutOfMemoryError:
    pass
print("cards", torch.cuda.device_count(), "held", 64 * len(held), flush=True)
a = held.pop()[: 2048 * 2048].view(2048, 2048)
while not pathlib.Path(os.environ["OUT"], "end").exists():
    for _ in range(50):
        a = torch.tanh(a @ a)
    torch.cuda.synchronize()
"""


@pytest.fixture(scope="module")
def card():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA card, or torch was built without CUDA")
    from workers.machines.telemetry.nvml import find_probe

    probe = find_probe()
    if not probe.cards():
        pytest.skip("the driver tells of no card")
    return probe


class Running:
    """A supervised job on a share of the card."""

    def __init__(self, path: Path, card, eighths: int, **env: str) -> None:
        self.path = path
        for name in ("code", "outputs", "tmp"):
            (path / name).mkdir(parents=True)
        about = card.cards()[0]
        tier, bwrap = tiers.best_tier()
        uid = UID if tier == 3 else 0
        row = _row(about)
        told = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(path / "tmp"),
            "OUT": str(path / "outputs"),
            "CUDA_VISIBLE_DEVICES": about.uuid,
            "AIP_GPU_MEMORY_FRACTION": str(eighths / 8),
            **env,
        }
        ticket = Ticket(
            job=1, attempt=1, argv=[PYTHON, "-c", GREEDY], env=told, cwd=str(path / "code"), tier=tier,
            bwrap=bwrap, tmp=str(path / "tmp"), read_only=[*map(str, tiers.python_folders()), str(path)], uid=uid,
            read_write=[str(path / "code"), str(path / "outputs")], devices=tickets.device_files([row]),
        )  # fmt: skip
        records.write(path / records.LAUNCH, ticket.to_json())
        started = subprocess.run([PYTHON, "-I", "-S", str(MAIN), str(path)], check=False, timeout=90).returncode
        assert started == 0

    def request(self, word: str) -> None:
        records.write_request(self.path, word)

    def state(self) -> str:
        return (records.read(self.path / records.STATUS) or {}).get("state", "")

    def held_mib(self) -> int:
        words = wait_for(self.log).split()
        return int(words[words.index("held") + 1])

    def log(self) -> str:
        text = (self.path / records.LOG).read_text()
        return text if "held" in text or "Error" in text else ""

    def kill(self) -> None:
        kept = records.read(self.path / records.SUPERVISOR) or {}
        if records.is_alive(kept):
            processes.send([kept["pid"]], signal.SIGKILL)


def _row(about):
    """The card as a row that was never saved: what `device_files` reads."""
    from workers.models import Device

    return Device(kind=Device.Kind.GPU, index=about.index, uuid=about.uuid, memory_mib=about.memory_mib)


@pytest.fixture
def start(tmp_path, card):
    made = []

    def one(eighths: int, **env: str) -> Running:
        made.append(Running(tmp_path / str(len(made)), card, eighths, **env))
        return made[-1]

    yield one
    for job in made:
        job.kill()


def _load(card, seconds: float = 3.0) -> float:
    """Mean utilisation of the first card over some seconds."""
    seen = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen.append(card.read()[0].util or 0.0)
        time.sleep(0.25)
    return sum(seen) / len(seen)


def test_card_share_keeps_two_jobs_on_one_card_within_their_memory(start, card):
    whole = card.cards()[0].memory_mib
    small, large = start(2), start(4)

    got = {2: small.held_mib(), 4: large.held_mib()}

    for eighths, held in got.items():
        assert 0.8 * whole * eighths / 8 < held <= whole * eighths / 8
    assert card.read()[0].memory_used_mib < whole * 6 / 8 + 2 * CONTEXT_MIB + 64


def test_pause_brings_the_load_to_nothing_and_keeps_the_memory(start, card):
    job = start(2, PIECES="16")
    job.held_mib()
    assert wait_for(lambda: _load(card, 1.0) > 30)
    before = card.read()[0].memory_used_mib

    job.request("pause")
    wait_for(lambda: job.state() == "paused")
    time.sleep(1)  # pause: the driver's figure is a mean over its last second

    assert _load(card) < 1
    assert abs(card.read()[0].memory_used_mib - before) < 8
    job.request("run")
    assert wait_for(lambda: _load(card, 1.0) > 30)


def test_stop_frees_the_memory(start, card):
    before = card.read()[0].memory_used_mib
    job = start(4, PIECES="64")
    job.held_mib()
    assert card.read()[0].memory_used_mib > before + 3000

    job.request("stop")

    wait_for(lambda: records.read(job.path / records.EXIT))
    wait_for(lambda: card.read()[0].memory_used_mib < before + 64, 15)


def test_sandbox_job_sees_its_own_card_and_no_device_file_of_another(start, card):
    job = start(1, PIECES="2")

    assert "cards 1 " in wait_for(job.log)
    if tiers.best_tier()[0] >= 2:
        own = f"nvidia{tickets.minor_of(_row(card.cards()[0]))}"
        pid = processes.descendants(records.read(job.path / records.SUPERVISOR)["pid"])[-1]
        there = {
            name for name in os.listdir(f"/proc/{pid}/root/dev") if name.startswith("nvidia") and name[6:].isdigit()
        }
        assert there == {own}


def test_card_memory_is_told_by_process(start, card):
    job = start(2, PIECES="16")
    job.held_mib()
    supervisor = records.read(job.path / records.SUPERVISOR)["pid"]

    held = card.read()[0].processes
    if not held:
        pytest.skip("the driver does not tell processes here, as in many containers")
    assert any(pid in held for pid in processes.descendants(supervisor))
    assert max(held.values()) > 1000


def test_eviction_brings_work_back_to_the_last_bit(card, tmp_path):
    """Train, evict, fill the card with another program, bring back: every loss equals that of an undisturbed run."""
    about = card.cards()[0]
    can = eviction_probe.look([about], tiers.best_tier()[0], eviction_probe.host_memory_mib())
    if can["code"]:
        pytest.skip(f"this machine cannot evict: {can['code']} {can['detail']}")

    seen = eviction_proof.prove(card, about, folder=tmp_path)

    assert seen.steps == eviction_proof.STEPS
    assert seen.held_mib > eviction_proof.BALLAST_MIB
    assert seen.freed_mib > seen.held_mib - eviction_proof.LEFT_MIB
    assert seen.filled_mib > 0.5 * about.memory_mib


def test_cuda_checkpoint_says_what_state_a_process_is_in(start, card):
    """The calls of the driver itself, one by one, on a program that computes."""
    if eviction_probe.look([card.cards()[0]], 0, eviction_probe.host_memory_mib())["code"]:
        pytest.skip("this machine cannot evict")
    job = start(1, PIECES="4")
    job.held_mib()
    driver = cuda_checkpoint.Driver()
    below = processes.descendants(records.read(job.path / records.SUPERVISOR)["pid"])
    (pid,) = [pid for pid in below if driver.state(pid) is not None]

    states = [driver.state(pid)]
    for act in (driver.lock, driver.checkpoint, driver.restore, driver.unlock):
        act(pid)
        states.append(driver.state(pid))

    assert states == [
        cuda_checkpoint.RUNNING,
        cuda_checkpoint.LOCKED,
        cuda_checkpoint.CHECKPOINTED,
        cuda_checkpoint.LOCKED,
        cuda_checkpoint.RUNNING,
    ]
    assert wait_for(lambda: _load(card, 1.0) > 30)
