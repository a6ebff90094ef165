"""Eviction probe: whether this machine's driver can move a program's card memory to the host and back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiplatform import env
from aiplatform.lib import units
from workers.resources.nodes.telemetry.probe import Card
from workers.supervisor import cuda_checkpoint, sandbox

VERSION = Path("/proc/driver/nvidia/version")
PROBE_S = 20.0


def check(
    cards: Iterable[Card], tier: int, memory_mib: int, *, library: str = cuda_checkpoint.LIBRARY
) -> dict[str, Any]:
    """Return the value of `Node.evict_can`: {"driver", "tier", "code", "detail"}.

    `code` is empty where it can; else a name of `eviction_policy.CANNOT`, which `detail` fills. Nothing is started in
    the driver: only the proof on a card shows that it works.
    """
    cards = [card for card in cards if card.kind == "gpu"]
    real = [card for card in cards if not card.simulated]
    result = {"driver": driver_version(), "tier": tier, "code": "", "detail": ""}
    if not real:
        return {**result, "code": "simulated" if cards else "no_card"}
    if tier >= sandbox.CONTAINER:
        return {**result, "code": "container"}
    if env.CUDA_MPS_PIPE:
        return {**result, "code": "mps"}
    if min(card.memory_mib for card in real) > memory_mib:
        return {**result, "code": "little_memory", "detail": units.memory(memory_mib)}
    answer = probe(library)
    return result if answer.get("ok") else {**result, "code": "no_driver", "detail": str(answer.get("why", ""))}


def probe(library: str = cuda_checkpoint.LIBRARY) -> dict[str, Any]:
    """Check, in a process of its own, that the driver's library has the calls: {"ok"} or {"ok", "why"}."""
    command = [sys.executable, "-I", "-S", cuda_checkpoint.__file__, "probe", library]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_S, check=False)  # noqa: S603 - our own program and paths of ours
        answer = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as exc:
        return {"ok": False, "why": f"{type(exc).__name__}: {exc}"}
    return answer if isinstance(answer, dict) else {"ok": False, "why": "the probe said nothing"}


def driver_version(path: Path = VERSION) -> str:
    """Version of the NVIDIA driver that the kernel runs, "" without one."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return ""
    match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", lines[0] if lines else "")
    return match.group(1) if match else ""


def host_memory_mib() -> int:
    """Memory of this machine in MiB."""
    return (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) >> 20
