"""Processor, memory, disk and net of this machine, and of a job's process tree, from /proc."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
TICKS_S = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class HostReading:
    """This machine at one moment. Rates are means since the previous reading, None at the first."""

    cpu_percent: float | None
    """0 to 100 over all cores."""
    cores: int
    memory_used_mib: int
    memory_total_mib: int
    disk_free_bytes: int
    disk_total_bytes: int
    inodes_free: int
    inodes_total: int
    """0 where the file system counts none."""
    net_in_bps: float | None
    """Bytes per second over all real interfaces."""
    net_out_bps: float | None


@dataclass(frozen=True, slots=True)
class TreeReading:
    """A process and all its descendants. `cpu_percent` is 100 per busy core, None at the first reading."""

    cpu_percent: float | None
    memory_mib: float
    processes: int
    pids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    started: int
    ticks: int


class Host:
    """Reads rates, so it remembers the previous counters. Not safe for several threads."""

    def __init__(self, disk: Path, proc: Path = Path("/proc")) -> None:
        self.disk, self.proc = disk, proc
        self._cpu: tuple[int, int] | None = None
        self._net: tuple[float, dict[str, tuple[int, int]]] | None = None
        self.interfaces: list[dict[str, float | str]] = []
        self._trees: dict[int, tuple[float, dict[tuple[int, int], int]]] = {}

    def read(self) -> HostReading:
        """One reading of the machine."""
        total_mib, free_mib = self._memory()
        disk = os.statvfs(self.disk)
        coming, going = self._net_rates()
        return HostReading(
            cpu_percent=self._cpu_percent(),
            cores=os.cpu_count() or 1,
            memory_used_mib=total_mib - free_mib,
            memory_total_mib=total_mib,
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            disk_total_bytes=disk.f_blocks * disk.f_frsize,
            inodes_free=disk.f_favail,
            inodes_total=disk.f_files,
            net_in_bps=coming,
            net_out_bps=going,
        )

    def trees(self, roots: Iterable[int]) -> dict[int, TreeReading]:
        """Readings of the process trees under `roots` (process ids); a missing root is left out.

        Memory counts private pages of every process and the largest share of common pages once.
        """
        roots = list(roots)
        processes = self._processes() if roots else {}
        children: dict[int, list[int]] = defaultdict(list)
        for pid, process in processes.items():
            children[process.parent].append(pid)
        now = time.monotonic()
        readings, samples = {}, {}
        for root in roots:
            if root not in processes:
                continue
            members = _descendants(root, children)
            ticks = {(pid, processes[pid].started): processes[pid].ticks for pid in members}
            private, common = self._pages(members)
            readings[root] = TreeReading(
                self._tree_percent(root, now, ticks), (private + common) * PAGE / MIB, len(members), frozenset(members)
            )
            samples[root] = (now, ticks)
        self._trees = samples
        return readings

    def _tree_percent(self, root: int, now: float, ticks: dict[tuple[int, int], int]) -> float | None:
        before = self._trees.get(root)
        if before is None or now <= before[0]:
            return None
        used = sum(max(0, count - before[1].get(key, 0)) for key, count in ticks.items())
        return used / TICKS_S / (now - before[0]) * 100

    def _processes(self) -> dict[int, _Process]:
        processes = {}
        for folder in self.proc.iterdir():
            if not folder.name.isdigit():
                continue
            try:
                stat = (folder / "stat").read_text(errors="replace")
            except OSError:  # ended meanwhile
                continue
            fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
            processes[int(folder.name)] = _Process(int(fields[1]), int(fields[19]), int(fields[11]) + int(fields[12]))
        return processes

    def _pages(self, pids: Iterable[int]) -> tuple[int, int]:
        private = common = 0
        for pid in pids:
            try:
                _, resident, shared, *_ = (self.proc / str(pid) / "statm").read_text().split()
            except (OSError, ValueError):
                continue
            private += int(resident) - int(shared)
            common = max(common, int(shared))
        return private, common

    def _cpu_percent(self) -> float | None:
        values = [int(v) for v in (self.proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
        total, idle = sum(values), values[3] + values[4]
        before, self._cpu = self._cpu, (total, idle)
        if before is None or total <= before[0]:
            return None
        busy = (total - before[0]) - (idle - before[1])
        return min(100.0, max(0.0, busy / (total - before[0]) * 100))

    def _memory(self) -> tuple[int, int]:
        """Total and available memory in MiB."""
        table = {}
        for line in (self.proc / "meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            table[name] = int(rest.split()[0]) // 1024
        return table["MemTotal"], table.get("MemAvailable", table.get("MemFree", 0))

    def _net_rates(self) -> tuple[float | None, float | None]:
        """Rates of all real interfaces together; `interfaces` holds them one by one."""
        counters: dict[str, tuple[int, int]] = {}
        try:
            lines = (self.proc / "net/dev").read_text().splitlines()[2:]
        except OSError:
            return None, None
        for line in lines:
            name, _, rest = line.partition(":")
            if name.strip() != "lo":
                fields = rest.split()
                counters[name.strip()] = int(fields[0]), int(fields[8])
        now = time.monotonic()
        before, self._net = self._net, (now, counters)
        if before is None or now <= before[0]:
            return None, None
        passed = now - before[0]
        self.interfaces = [
            {
                "name": name,
                "in_bps": max(0.0, (coming - before[1].get(name, (coming, 0))[0]) / passed),
                "out_bps": max(0.0, (going - before[1].get(name, (0, going))[1]) / passed),
            }
            for name, (coming, going) in list(counters.items())[:20]
        ]
        return sum(float(item["in_bps"]) for item in self.interfaces), sum(
            float(item["out_bps"]) for item in self.interfaces
        )


def _descendants(root: int, children: dict[int, list[int]]) -> set[int]:
    members, todo = {root}, [root]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in members:
                members.add(child)
                todo.append(child)
    return members
