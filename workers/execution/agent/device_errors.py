"""Device errors: copies what this machine's device logs say of a job's cards into the job's run directory.

The kernel's log has NVIDIA's Xid lines, by the card's place on the PCI bus; NPUs have a folder with a log for each
device, where the operator names it. Each line is kept once: the kernel's are known by their number in its log, the
NPUs' by their words, which begin with their time.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from aiplatform import env
from workers.core.models import Device
from workers.core.runs import RunDir
from workers.execution.agent import npu_logs, ranks
from workers.execution.agent.npu_logs import NpuLogs
from workers.jobs.output.device_errors import FOLDER, MAX_BYTES
from workers.supervisor import records

log = logging.getLogger(__name__)

DRIVERS = Path("/proc/driver/nvidia/gpus")
_RECORD = re.compile(
    r"\d+,(?P<number>\d+),(?P<us>\d+),[^;]*;(?P<text>NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<xid>\d+).*)"
)
_READ = 8192  # the longest record of the kernel's log
_MAX_LENGTH = 1000  # letters of a line that are kept


@dataclass(frozen=True)
class Line:
    """One error: what it is known by, when, of which card, the driver's code and words."""

    number: str
    at: float
    card: str
    code: int | None
    text: str


def collect(node: str, npus: NpuLogs | None = None) -> int:
    """Write new errors for every live attempt on this node; return the number of lines.

    Args:
        npus: the NPUs' logs as far as they were read; without it they are read from their beginning.
    """
    here = [part for part in ranks.list_for_node(node) if _real(part)]
    if not here:
        return 0
    kernel = list(kernel_lines(Path(env.KERNEL_LOG)))
    devices = {held.device.pk: held.device for part in here for held in part.held}
    lines = {pk: _of_card(device, kernel, npus or NpuLogs()) for pk, device in devices.items()}
    written = 0
    for part in here:
        new_lines = [line for held in part.held for line in lines[held.device.pk]]
        since = (part.attempt.started_at or part.attempt.assigned_at).timestamp()
        folder = RunDir.for_attempt(part.attempt.job_id, part.attempt.number).path / FOLDER
        written += append_lines(folder / f"{node}.jsonl", [line for line in new_lines if line.at >= since])
    return written


def kernel_lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Yield NVIDIA's error lines of the kernel's log with the GPU's bus address; none where it cannot be read."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    for text in _records(path):
        if match := _RECORD.match(text):
            at = booted + int(match["us"]) / 1e6
            line = Line(f"{records.boot_id()}:{match['number']}", at, "", int(match["xid"]), match["text"].strip())
            yield bus_address(match["bus"]), line


def append_lines(path: Path, lines: Collection[Line]) -> int:
    """Append lines to a record of errors, each once, while there is room; return the number of added lines."""
    if not lines:
        return 0
    numbers, size = _read_numbers(path)
    rows = []
    for line in sorted(lines, key=lambda item: item.at):
        if line.number in numbers:
            continue
        numbers.add(line.number)
        row = {"number": line.number, "at": line.at, "card": line.card, "code": line.code, "text": line.text}
        rows.append((json.dumps(row, ensure_ascii=False) + "\n").encode())
    rows = [row for row, end in zip(rows, _ends(size, rows), strict=True) if end <= MAX_BYTES]
    if rows:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write((b"\n" if size and not path.read_bytes().endswith(b"\n") else b"") + b"".join(rows))
    return len(rows)


def bus_address(bus: str) -> str:
    """A card's place on the PCI bus as everybody writes it alike: "0000:3b:00"."""
    domain, _colon, rest = bus.lower().partition(".")[0].partition(":")
    return f"{domain[-4:].zfill(4)}:{rest}"


def bus_addresses(drivers: Path = DRIVERS) -> dict[str, str]:
    """Bus address of each GPU by its UUID, as the driver reports it."""
    addresses = {}
    for information in drivers.glob("*/information"):
        try:
            facts = dict(line.split(":", 1) for line in information.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        addresses[facts.get("GPU UUID", "").strip()] = bus_address(information.parent.name)
    return addresses


def _real(part: ranks.RankRun) -> bool:
    return any(row.device.kind != Device.Kind.CPU and not row.device.simulated for row in part.held)


def _of_card(device: Device, kernel: list[tuple[str, Line]], npus: NpuLogs) -> list[Line]:
    name = f"{device.kind}{device.index}"
    if device.kind == Device.Kind.NPU:
        rows = npus.read_errors(Path(env.NPU_LOGS), device.index) if env.NPU_LOGS else []
        cut = [(row.at, row.text[:_MAX_LENGTH]) for row in rows]
        return [Line(npu_logs.key(name, text), at, name, None, text) for at, text in cut]
    at = bus_addresses().get(device.uuid) if device.kind == Device.Kind.GPU else None
    return [
        Line(line.number, line.at, name, line.code, line.text[:_MAX_LENGTH]) for bus, line in kernel if at and bus == at
    ]


def _records(path: Path) -> Iterator[str]:
    """The lines of the kernel's log. Its device hands out one record at a read, and would wait for the next."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    rest = b""
    try:
        while True:
            try:
                data = os.read(descriptor, _READ)
            except BlockingIOError:
                break
            except BrokenPipeError:  # it was overwritten under us: the next read goes on behind that
                continue
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
    except OSError as exc:
        log.info("kernel log not read: %s", exc)
    finally:
        os.close(descriptor)


def _read_numbers(path: Path) -> tuple[set[str], int]:
    try:
        data = path.read_bytes()
    except OSError:
        return set(), 0
    numbers = set()
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
            numbers |= {str(row["number"]), npu_logs.key(str(row["card"]), str(row["text"]))}
        except (ValueError, KeyError, TypeError):
            continue
    return numbers, len(data)


def _ends(size: int, rows: list[bytes]) -> Iterator[int]:
    for row in rows:
        size += len(row)
        yield size
