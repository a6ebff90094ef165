"""What the agent stores: one JSON-ready sample of the node, and one line of figures per job."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.resources.nodes.telemetry import processes
from workers.resources.nodes.telemetry.host import MIB, Host
from workers.resources.nodes.telemetry.nvml import find_probe
from workers.resources.nodes.telemetry.probe import FakeProbe, Probe, Reading
from workers.resources.nodes.telemetry.storage import Storage


@dataclass(frozen=True, slots=True)
class Watched:
    """A job on this node: the process above all of its own and the indices of its cards."""

    job: int
    root_pid: int
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """`node` for the node's row; `jobs` maps a job to figures keyed like metrics (`system/cpu`)."""

    node: dict[str, Any]
    jobs: dict[int, dict[str, float]]
    readings: list[Reading] = field(default_factory=list)


class Sampler:
    """Reads the cards and the host together. One per agent; `sample` takes at most about 2 s."""

    def __init__(self, probe: Probe, disk: Path, host: Host | None = None) -> None:
        self.probe = probe
        self.host = host or Host(disk)
        self.storage = Storage(self.host.proc)

    def sample(self, watched: Iterable[Watched] = ()) -> Sample:
        """One sample of the node and of the jobs it runs."""
        watched = list(watched)
        every = self.probe.read()
        readings = {reading.index: reading for reading in every if reading.kind == "gpu"}
        node = self._node(readings)
        trees = self.host.trees(w.root_pid for w in watched)
        stored = self.storage.rates({root: tree.pids for root, tree in trees.items()})
        net = _rates("machine_net", ("in", "out"), (node["net_in_bps"], node["net_out_bps"]))
        jobs = {}
        for entry in watched:
            tree = trees.get(entry.root_pid)
            if tree is None:
                continue
            figures = {"system/memory_mib": round(tree.memory_mib, 1)}
            if tree.cpu_percent is not None:
                figures["system/cpu"] = round(tree.cpu_percent, 1)
            figures |= _rates("disk", ("read", "write"), stored.get(entry.root_pid, (None, None)))
            figures |= net | _card_figures(entry.cards, readings, tree.pids)
            jobs[entry.job] = figures
        return Sample(node, jobs, every)

    def _node(self, readings: Mapping[int, Reading]) -> dict[str, Any]:
        host = self.host.read()
        cards = [
            {
                "index": r.index,
                "util": r.util,
                "memory_used_mib": r.memory_used_mib,
                "temperature_c": r.temperature_c,
                "power_w": r.power_w,
                "ecc_errors": r.ecc_errors,
            }
            for r in readings.values()
        ]
        return {
            "cpu_percent": host.cpu_percent,
            "cores": host.cores,
            "memory_used_mib": host.memory_used_mib,
            "memory_total_mib": host.memory_total_mib,
            "disk_free_bytes": host.disk_free_bytes,
            "disk_total_bytes": host.disk_total_bytes,
            "inodes_free": host.inodes_free,
            "inodes_total": host.inodes_total,
            "net_in_bps": host.net_in_bps,
            "net_out_bps": host.net_out_bps,
            "interfaces": self.host.interfaces,
            "disks": processes.disks(),
            "services": processes.services(self.host.disk),
            "simulated": self.probe.simulated,
            "cards": cards,
        }


def open_probe(fake_cards: int = 0, fake_npus: int = 0) -> Probe:
    """The probe: simulated cards where settings say so, else the driver."""
    if fake_cards or fake_npus:
        return FakeProbe(fake_cards, npus=fake_npus)
    return find_probe()


def _rates(of: str, directions: tuple[str, str], rates: tuple[float | None, float | None]) -> dict[str, float]:
    """Curves in MiB/s of bytes per second in two directions; none while there is nothing to compare with."""
    measured = {direction: rate for direction, rate in zip(directions, rates, strict=True) if rate is not None}
    return {f"system/{of}_{direction}_mib_s": round(rate / MIB, 3) for direction, rate in measured.items()}


def _card_figures(cards: Iterable[int], readings: Mapping[int, Reading], pids: frozenset[int]) -> dict[str, float]:
    """Figures of whole cards, and `…_own_mib`: what the job's own processes hold of one."""
    figures = {}
    for index in cards:
        reading = readings.get(index)
        if reading and reading.util is not None:
            figures[f"system/gpu{index}_util"] = round(reading.util, 1)
        if reading and reading.memory_used_mib is not None:
            figures[f"system/gpu{index}_memory_mib"] = round(reading.memory_used_mib, 1)
        own = [held for pid, held in reading.processes.items() if pid in pids] if reading else []
        if own:
            figures[f"system/gpu{index}_own_mib"] = round(sum(own), 1)
    return figures
