"""Moving a program's card memory to the host and back: the real supervisor and the real calls, with a driver of ours.

The stub keeps the state of each "CUDA process" in a file beside itself, see cuda_stub.c. What only a card can prove is
in tests/gpu.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.running import wait_for as until
from tests.workers.supervised import PYTHON, Run
from workers.execution import tickets
from workers.execution.agent import eviction_probe, eviction_proof
from workers.resources.nodes.telemetry.probe import Card, Reading
from workers.supervisor import processes, records

SOURCE = Path(__file__).with_name("cuda_stub.c")
# Each process of the program says that it uses CUDA, then counts; what is off its card does not count on.
PROGRAM = """
import os, pathlib, sys, time
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
home = pathlib.Path(os.environ["STUB"])
(home / f"{os.getpid()}.part").write_text("0")
(home / f"{os.getpid()}.part").rename(home / str(os.getpid()))
over = time.monotonic() + 300  # where nobody is left who would end it
while not (home / "end").exists() and time.monotonic() < over:
    if (home / str(os.getpid())).read_text() == "0":
        print("step", flush=True)
    time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed, the CUDA stub cannot be compiled")
    folder = tmp_path_factory.mktemp("cuda")
    for name, more in (("libcuda.so.1", []), ("old.so", ["-DOLD"])):
        subprocess.run([gcc, "-shared", "-fPIC", "-w", *more, "-o", folder / name, SOURCE], check=True)
    return folder


class Stub:
    """A folder with a driver and what it did."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        shutil.copy(library / "libcuda.so.1", folder)
        shutil.copy(library / "old.so", folder)

    def states(self) -> dict[int, int]:
        return {int(p.name): int(p.read_text()) for p in self.folder.iterdir() if p.name.isdigit()}

    def calls(self) -> list[str]:
        told = self.folder / "calls"
        return [line.split()[0] for line in told.read_text().splitlines()] if told.exists() else []

    def fail(self, call: str, code: str) -> None:
        (self.folder / f"fail-{call}").write_text(code)

    def hang(self, call: str) -> None:
        (self.folder / f"hang-{call}").touch()

    def let(self, call: str) -> None:
        (self.folder / f"hang-{call}").unlink()


@pytest.fixture
def stub(library, tmp_path):
    return Stub(library, tmp_path / "driver")


@pytest.fixture
def start(tmp_path, stub):
    """Start a program of some CUDA processes; the name of the driver's library may be another."""
    made = []

    def one(count: int = 1, *, name: str = "libcuda.so.1", **more) -> Run:
        argv = ["/usr/bin/env", f"STUB={stub.folder}", PYTHON, "-c", PROGRAM, str(count)]
        new = Run(tmp_path / f"run{len(made)}", 0, argv, libcuda=str(stub.folder / name), **more)
        made.append(new)
        assert new.start() == 0
        until(lambda: len(stub.states()) == count)
        return new

    yield one
    for run in made:
        kept = run.supervisor
        if records.is_alive(kept):
            pids = processes.descendants(kept["pid"])
            processes.send([kept["pid"], *pids], signal.SIGKILL)


def steps(run: Run) -> int:
    return run.log().count("step")


def status(run: Run) -> dict:
    return records.read(run.path / records.STATUS) or {}


def evicted(run: Run) -> None:
    run.wish("evict")
    until(lambda: run.state() == "evicted")


def goes_on(run: Run) -> None:
    before = steps(run)
    until(lambda: steps(run) > before)


def test_eviction_locks_moves_and_stops_a_process_and_returns_it_alike(start, stub):
    run = start()
    goes_on(run)

    evicted(run)

    assert stub.calls() == ["Lock", "Checkpoint"]
    (pid,) = stub.states()
    assert (stub.states()[pid], processes.state(pid)) == (2, "T")
    run.wish("run")
    until(lambda: run.state() == "running")
    assert stub.calls() == ["Lock", "Checkpoint", "Restore", "Unlock"]
    goes_on(run)
    (stub.folder / "end").touch()
    assert (run.exit()["code"], run.exit()["paused_s"] > 0) == (0, True)


def test_eviction_locks_all_processes_before_the_first_is_moved(start, stub):
    run = start(3)

    evicted(run)
    run.wish("run")
    until(lambda: run.state() == "running")

    assert stub.calls() == ["Lock"] * 3 + ["Checkpoint"] * 3 + ["Restore"] * 3 + ["Unlock"] * 3
    assert set(stub.states().values()) == {0}


@pytest.mark.parametrize(("call", "undone"), [("Lock", []), ("Checkpoint", ["Unlock", "Unlock"])])
def test_eviction_leaves_all_processes_when_one_cannot_leave_and_says_why(start, stub, call, undone):
    run = start(2)
    stub.fail(call, "801")

    run.wish("evict")
    until(lambda: run.state() == "kept")

    assert f"cuCheckpointProcess{call} says CUDA_ERROR_NOT_SUPPORTED (801)" in status(run)["why"]
    assert set(stub.states().values()) == {0}
    assert stub.calls()[-len(undone) :] == undone if undone else stub.calls() == ["Lock"]
    goes_on(run)
    run.wish("run")
    until(lambda: run.state() == "running")
    evicted(run)  # another time it may


def test_eviction_probe_finds_the_calls_in_the_library(stub):
    card = Card(0, "GPU-stub", "Stub", 16_384)

    can, old = (
        eviction_probe.check([card], 2, 64_000, library=str(stub.folder / name)) for name in ("libcuda.so.1", "old.so")
    )

    assert (can["code"], can["tier"]) == ("", 2)
    assert (old["code"], "older than 570" in old["detail"]) == ("no_driver", True)


@pytest.mark.parametrize("name", ["old.so", "missing.so"])
def test_eviction_without_the_driver_calls_leaves_the_process_running(start, stub, name):
    run = start(name=name)

    run.wish("evict")
    until(lambda: run.state() == "kept")

    assert ("older than 570" if name == "old.so" else "no CUDA driver") in status(run)["why"]
    assert stub.calls() == []
    goes_on(run)


def test_eviction_caller_may_be_killed_between_lock_and_checkpoint(start, stub):
    run = start()
    stub.hang("Checkpoint")
    run.wish("evict")
    until(lambda: stub.calls() == ["Lock", "Checkpoint"])
    (helper,) = set(processes.descendants(run.supervisor["pid"])) - set(run.programs())

    os.kill(helper, signal.SIGKILL)
    stub.let("Checkpoint")

    until(lambda: run.state() == "kept")
    assert "was ended" in status(run)["why"]
    assert set(stub.states().values()) == {0}
    goes_on(run)


def test_eviction_return_that_fails_is_tried_again(start, stub):
    run = start()
    evicted(run)
    stub.fail("Restore", "2")

    run.wish("run")

    until(lambda: run.state() == "running")
    assert stub.calls() == ["Lock", "Checkpoint", "Restore", "Restore", "Unlock"]
    goes_on(run)


def test_eviction_ends_a_process_that_cannot_come_back_and_says_why(start, stub):
    run = start()
    evicted(run)
    stub.fail("Restore", "2+")

    run.wish("run")

    assert run.exit()["limit"] == "stranded"
    assert "CUDA_ERROR_OUT_OF_MEMORY" in run.exit()["stranded"]
    assert "[program] stranded" in run.log()
    assert run.programs() == []


def test_eviction_lets_a_stop_work_while_the_job_is_off_its_card(start, stub):
    run = start(2, stop_grace_s=1.0)
    evicted(run)

    run.wish("stop")

    assert run.exit()["requested"] == "stop"
    assert run.programs() == []


def test_eviction_lets_a_stop_work_while_the_driver_hangs(start, stub):
    run = start(stop_grace_s=1.0)
    stub.hang("Checkpoint")
    run.wish("evict")
    until(lambda: "Checkpoint" in stub.calls())

    run.wish("stop")

    assert run.exit()["requested"] == "stop"
    assert run.programs() == []


def test_eviction_ends_the_evicted_process_with_its_killed_supervisor(start, stub):
    run = start(2)
    evicted(run)

    os.kill(run.supervisor["pid"], signal.SIGKILL)

    first = min(stub.states())
    until(lambda: processes.state(first) in "XZ")
    assert records.read(run.path / records.EXIT) is None


def test_eviction_stops_the_run_time_and_does_not_count_the_memory(start, stub):
    run = start(memory_bytes=1 << 40)
    evicted(run)

    records.write(run.path / records.LIMIT, "0.01")
    time.sleep(1.2)  # pause: two looks of the supervisor

    assert run.state() == "evicted"
    run.wish("run")
    assert run.exit()["limit"] == "max_runtime"  # on its card it runs again
    assert run.exit()["paused_s"] >= 1.2


def test_eviction_takes_a_paused_program_off_its_card_and_returns_it(start, stub):
    run = start()
    run.wish("pause")
    until(lambda: run.state() == "paused")

    evicted(run)
    run.wish("run")

    until(lambda: run.state() == "running")
    goes_on(run)


TRAINS = """
import os, pathlib, sys, time
home = pathlib.Path({stub!r})
mine = home / str(os.getpid())
(home / "begun.part").write_text("0")
(home / "begun.part").rename(mine)
for step in range(int(sys.argv[2])):
    while mine.read_text() != "0":
        time.sleep(0.01)
    print("loss", step, float(step{more}).hex(), flush=True)
    time.sleep(0.01)
print("ballast whole", flush=True)
mine.unlink()
"""
FILLS = "print('filled', {filled}, 9000, 16384)"


class Memory:
    """A probe of one card that holds a GiB for each process on it."""

    def __init__(self, stub: Stub) -> None:
        self.stub = stub

    def read(self) -> list[Reading]:
        return [Reading(0, memory_used_mib=1024.0 * list(self.stub.states().values()).count(0))]


@pytest.fixture
def prove(stub, tmp_path, monkeypatch):
    monkeypatch.setattr(tickets, "tier", lambda: (0, ""))
    monkeypatch.setattr(eviction_proof, "STEPS", 200)
    monkeypatch.setattr(eviction_proof, "EVICT_AT", 5)

    def one(*, more="", filled="True"):
        monkeypatch.setattr(eviction_proof, "TRAINING", TRAINS.format(stub=str(stub.folder), more=more))
        monkeypatch.setattr(eviction_proof, "FILLING", FILLS.format(filled=filled))
        card = Card(0, "GPU-stub", "Stub", 16_384)
        return eviction_proof.prove(Memory(stub), card, folder=tmp_path, library=str(stub.folder / "libcuda.so.1"))

    return one


def test_eviction_proof_sees_memory_leave_reused_and_equal_losses(prove, tmp_path):
    seen = prove()

    assert (seen.held_mib, seen.freed_mib, seen.filled_mib, seen.steps) == (1024, 1024, 9000, 200)
    assert not list(tmp_path.glob("eviction-proof-*"))


@pytest.mark.parametrize(
    ("how", "said"),
    [({"more": " + os.getpid()"}, "losses are equal"), ({"filled": "False"}, "another program could not use the card")],
)
def test_eviction_proof_fails_where_losses_differ_or_the_card_is_of_no_use(prove, how, said):
    with pytest.raises(eviction_proof.Failed, match=said):
        prove(**how)


def test_eviction_proof_fails_where_the_driver_refuses(prove, stub):
    stub.fail("Checkpoint", "801+")

    with pytest.raises(eviction_proof.Failed, match="CUDA_ERROR_NOT_SUPPORTED"):
        prove()
