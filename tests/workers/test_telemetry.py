import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workers.execution.agent.log_shipping import kind_of_disk
from workers.resources.nodes.telemetry import storage
from workers.resources.nodes.telemetry.host import Host
from workers.resources.nodes.telemetry.links import groups
from workers.resources.nodes.telemetry.probe import FakeProbe
from workers.resources.nodes.telemetry.sampler import Sampler, Watched

ROOT = Path(__file__).parents[2]
READ_CARDS = """
import dataclasses, json, time
from workers.resources.nodes.telemetry.nvml import find_probe
probe = find_probe()
begun = time.monotonic()
first, second = probe.read(), probe.read()
passed = time.monotonic() - begun
cards = [dataclasses.asdict(card) for card in probe.cards()]
print(json.dumps([cards, [dataclasses.asdict(r) for r in first], len(second), passed]))
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """A folder with our own libnvidia-ml.so.1."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed, the NVML stub cannot be compiled")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run([gcc, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    return folder


def read_cards(stub, **env):
    """Run the real NVML code in a process that finds the stub."""
    environ = {**os.environ, "LD_LIBRARY_PATH": str(stub), **env}
    done = subprocess.run(
        [sys.executable, "-c", READ_CARDS],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_read_cards_reads_nvml_cards(stub):
    cards, readings, again, _ = read_cards(stub)

    assert [(c["name"], c["uuid"], c["memory_mib"]) for c in cards] == [
        ("Stub 0", "GPU-stub-0", 16384),
        ("Stub 1", "GPU-stub-1", 16384),
    ]
    assert (readings[0]["util"], readings[0]["memory_used_mib"], readings[0]["power_w"]) == (40, 1024, 120.5)
    assert (readings[1]["util"], readings[1]["power_w"]) == (41, None)
    assert readings[0]["processes"] == {"4242": 512}
    assert again == 2
    assert {c["group"] for c in cards} == {0}  # joined by a link
    assert [r["fault"] for r in readings] == [None, None]


@pytest.mark.parametrize(("how", "faults"), [("LOST", [None, "vanished"]), ("ECC", ["ecc", None])])
def test_read_cards_reports_a_sick_card_and_reads_the_other(stub, how, faults):
    _, readings, *_ = read_cards(stub, **{f"NVML_STUB_{how}": "1"})

    assert [r["fault"] for r in readings] == faults
    assert readings[0]["ecc_errors"] == (3 if how == "ECC" else 0)


def test_read_cards_counts_clients_of_mps_which_have_a_list_of_their_own(stub):
    _, readings, *_ = read_cards(stub, NVML_STUB_MPS="1")

    assert [reading["processes"] for reading in readings] == [{"4242": 512, "4343": 256}, {"4242": 512}]


SHARING = """
import sys
from workers.resources.nodes.telemetry import nvml
print(*[nvml.sharing(uuid, 1.0) for uuid in ("GPU-stub-0", "GPU-stub-1")], sep="\\n")
"""


def test_sharing_says_what_mps_needs_to_know_of_a_card(stub, tmp_path):
    def said(folder, **env):
        environ = {**os.environ, "LD_LIBRARY_PATH": str(folder), **env}
        command = [sys.executable, "-c", SHARING]
        return subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert said(stub).splitlines() == [
        "Sharing(capability=(7, 5), mode='default')",
        "Sharing(capability=(7, 5), mode='exclusive')",
    ]
    assert said(stub, NVML_STUB_HANG="1").split() == ["None", "None"]
    assert said(tmp_path).split() == ["None", "None"]


FACTS = """
import json
from workers.resources.nodes.telemetry import nvml_facts
print(json.dumps(nvml_facts.read(30.0)))
"""


def test_facts_name_modes_and_links_and_leave_out_what_the_driver_does_not_say(stub, tmp_path):
    def said(folder):
        environ = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        command = [sys.executable, "-c", FACTS]
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)

    facts = said(stub)

    assert facts["links"] == [["X", "NVLink"], ["NVLink", "X"]]
    assert facts["gpus"][1] == {
        "index": 1, "uuid": "GPU-stub-1", "name": "Stub 1", "bus": "00000000:01:00.0", "memory_mib": 16384,
        "compute_capability": "7.5", "compute_mode": "exclusive process", "mig": False,
    }  # fmt: skip
    assert said(tmp_path) == {}


def test_read_cards_lists_slices_of_a_card_as_devices(stub):
    cards, readings, *_ = read_cards(stub, NVML_STUB_MIG="1")

    assert [(c["index"], c["uuid"], c["memory_mib"], c["parent"]) for c in cards] == [
        (0, "GPU-stub-0", 16384, None),
        (116, "MIG-stub-2", 8192, 1),
        (117, "MIG-stub-3", 8192, 1),
    ]
    assert [r["index"] for r in readings] == [0, 116, 117]


def test_read_cards_waits_two_seconds_at_most_for_a_hung_driver(stub):
    _, readings, again, passed = read_cards(stub, NVML_STUB_HANG="1")

    assert [(r["index"], r["util"], r["fault"]) for r in readings] == [(0, 40, None), (1, None, "hung")]
    assert again == 2
    assert passed < 30  # two reads: one waits for two seconds, the next answers at once


def test_read_cards_finds_no_cards_without_a_driver(tmp_path):
    cards, readings, _, _ = read_cards(tmp_path)

    assert (cards, readings) == ([], [])


@pytest.mark.parametrize(
    ("linked", "expected"),
    [
        ([[], [], [], []], [0, 0, 1, 1]),  # no links: NUMA nodes
        ([["b"], ["a"], ["d"], ["c"]], [0, 0, 1, 1]),
        ([["s"], ["s"], ["s"], ["s"]], [0, 0, 0, 0]),  # one switch
        ([["d"], [], [], ["A"]], [0, 1, 2, 0]),
    ],
)
def test_card_groups_join_linked_cards(linked, expected):
    assert groups(["a", "b", "c", "d"], linked, [0, 0, 1, 1]) == expected


def test_fake_probe_says_that_its_cards_are_simulated():
    probe = FakeProbe(4, load=lambda index: index * 50.0)

    assert all(card.simulated and card.name == "Simulated GPU" for card in probe.cards())
    assert [reading.util for reading in probe.read()] == [0, 50, 100, 100]
    assert {reading.util for reading in FakeProbe(4).read()} == {None}


def test_host_probe_reads_from_proc(tmp_path):
    reading = Host(tmp_path).read()

    assert 0 < reading.memory_used_mib < reading.memory_total_mib
    assert 0 < reading.disk_free_bytes <= reading.disk_total_bytes
    assert reading.cpu_percent is None


def ticks(pid: int) -> int:
    """Processor time a process has used, in hundredths of a second."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11])


def test_sampler_counts_the_whole_process_tree_of_a_job(tmp_path):
    busy = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'while 1: pass'])\n"
        "print(p.pid, flush=True)\n"
        "p.wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    sampler = Sampler(FakeProbe(2, load=lambda index: 30.0), tmp_path)
    try:
        first = sampler.sample([Watched(7, parent.pid, (1,))])
        begun, deadline = ticks(child), time.monotonic() + 60
        while ticks(child) < begun + 10 and time.monotonic() < deadline:
            time.sleep(0.02)
        second = sampler.sample([Watched(7, parent.pid, (1,)), Watched(8, 2**22 + 1)])
    finally:
        os.kill(child, 9)
        parent.wait(timeout=60)
        parent.stdout.close()

    assert "system/cpu" not in first.jobs[7]
    assert second.jobs[7]["system/cpu"] > 0
    assert second.jobs[7]["system/memory_mib"] > 5
    assert second.jobs[7]["system/gpu1_util"] == 30
    assert 8 not in second.jobs
    assert second.node["simulated"] is True


def counted(proc: Path, pid: int, read: int, written: int) -> None:
    """What the kernel would say of a process in a made-up /proc."""
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "io").write_text(f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n")


def test_storage_is_counted_over_a_tree_and_goes_on_where_a_child_ends(tmp_path, monkeypatch):
    clock = iter([10.0, 12.0, 14.0, 16.0])
    monkeypatch.setattr(storage.time, "monotonic", lambda: next(clock))
    read_by = storage.Storage(tmp_path)
    counted(tmp_path, 1, 100, 0)
    counted(tmp_path, 2, 50, 10)

    first = read_by.rates({1: [1, 2], 3: [3]})
    counted(tmp_path, 2, 250, 30)
    second = read_by.rates({1: [1, 2]})
    counted(tmp_path, 1, 100 + 250, 30)  # it waited for its child, whose counts are its own now
    third = read_by.rates({1: [1]})
    counted(tmp_path, 1, 0, 0)  # a child that nobody waited for took its counts along
    fourth = read_by.rates({1: [1]})

    assert first == {}
    assert second == {1: (100.0, 10.0)}
    assert third == {1: (0.0, 0.0)}
    assert fourth == {1: (0.0, 0.0)}


def test_storage_says_nothing_of_processes_that_may_not_be_looked_into(tmp_path):
    read_by = storage.Storage(tmp_path)
    (tmp_path / "1").mkdir()

    assert [read_by.rates({1: [1]}) for _look in range(2)] == [{}, {}]


def test_sampler_shows_what_a_real_process_writes_and_the_machines_network(tmp_path):
    if kind_of_disk(tmp_path) == "tmpfs":
        pytest.skip("a file system in memory writes to no disk")
    file = str(tmp_path / "written")
    # Pages that wait to be written are counted once: without fsync it takes seconds until a loop is counted again.
    writes = (
        f"import os, time\nwith open({file!r}, 'wb', buffering=0) as f:\n"
        " while 1: f.write(bytes(1 << 18)); os.fsync(f.fileno()); f.seek(0); time.sleep(0.02)"
    )
    writer = subprocess.Popen([sys.executable, "-c", writes])
    sampler, deadline = Sampler(FakeProbe(1), tmp_path), time.monotonic() + 60
    figures: dict[str, float] = {}
    try:
        while not figures.get("system/disk_write_mib_s") and time.monotonic() < deadline:
            time.sleep(0.05)
            figures = sampler.sample([Watched(7, writer.pid)]).jobs[7]
    finally:
        writer.kill()
        writer.wait(timeout=60)

    assert figures["system/disk_write_mib_s"] > 0
    assert figures["system/disk_read_mib_s"] >= 0
    assert figures["system/machine_net_in_mib_s"] >= 0
    assert "system/machine_net_out_mib_s" in figures
