"""What the report says of the node: its GPUs, and the software that checks require. Read in a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aiplatform.cli.gpu_report.definitions import Need
from workers.resources.nodes.telemetry.probe import Card, Reading

TORCH_S = 60.0
TORCH = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({
    "version": torch.__version__, "built_for_cuda": torch.version.cuda, "available": cuda,
    "cudnn": torch.backends.cudnn.version() if cuda else None,
    "nccl": ".".join(map(str, torch.cuda.nccl.version())) if cuda else None,
    "architectures": torch.cuda.get_arch_list() if cuda else [],
    "bfloat16": bool(cuda and torch.cuda.is_bf16_supported()),
}))
"""


def read(fake_gpus: int = 0) -> dict[str, Any]:
    """Return all facts, ready for JSON. With simulated GPUs no driver is queried.

    Args:
        fake_gpus: AIP_FAKE_GPUS.
    """
    from workers.resources.nodes.telemetry import sampler

    probe = sampler.open_probe(fake_gpus)
    cards = [card for card in probe.cards() if card.kind == "gpu"]
    facts: dict[str, Any] = {
        "devices": [asdict(card) for card in cards],
        "simulated": bool(fake_gpus),
        "processes": {reading.index: _named(reading) for reading in probe.read() if reading.kind == "gpu"},
        "kernel": platform.release(),
        "cpu_cores": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "python": platform.python_version(),
    }
    return facts if fake_gpus or not cards else facts | _of_driver(cards)


def _named(reading: Reading) -> list[str]:
    """Programs that compute on a GPU, as "1234 (python)"."""
    rows = []
    for pid in sorted(reading.processes):
        try:
            rows.append(f"{pid} ({(Path('/proc') / str(pid) / 'comm').read_text().strip()[:30]})")
        except OSError:
            rows.append(str(pid))
    return rows


def _of_driver(cards: Sequence[Card]) -> dict[str, Any]:
    from workers.execution import tickets
    from workers.execution.agent import eviction_probe
    from workers.resources.nodes.telemetry import nvml_facts

    tier = tickets.tier()[0]
    return {
        "nvml": nvml_facts.read(),
        "sandbox_tier": tier,
        "torch": _torch(),
        "mps": {"obstacle": _mps_obstacle(cards, tier)},
        "evictions": eviction_probe.check(cards, tier, eviction_probe.host_memory_mib()),
        "tensorrt": _version("tensorrt"),
        "pyav": _version("av"),
        "triton": _version("triton"),
        "compiler": shutil.which("cc") or shutil.which("gcc") or "",
        "nvidia_smi": shutil.which("nvidia-smi") or "",
    }


def _torch() -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-c", TORCH], capture_output=True, text=True, timeout=TORCH_S, check=False
        )
        rows = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as exc:
        return {"available": False, "error": f"{type(exc).__name__}: {exc}"[:300]}
    return rows if isinstance(rows, dict) else {"available": False}


def _mps_obstacle(cards: Sequence[Card], tier: int) -> str:
    """Why jobs on a share of the first GPU cannot use MPS; "" where they can."""
    from workers.execution import measurement_jobs
    from workers.execution.mps import daemon, joining

    if not daemon.program():
        return f"{daemon.PROGRAM} is not installed."
    try:
        joining.check_card(measurement_jobs.device_row(cards[0]), tier)
    except daemon.Unavailable as exc:
        return str(exc)
    return ""


def _version(package: str) -> str:
    try:
        return str(importlib.import_module(package).__version__)
    except (ImportError, OSError, AttributeError):
        return ""


def missing(needs: Sequence[Need], facts: Mapping[str, Any], devices: int) -> str:
    """What a check requires and this node lacks, in a sentence; "" where all is there.

    Args:
        devices: how many GPUs are reserved.
    """
    torch = facts.get("torch", {})
    evictions = facts.get("evictions", {})
    obstacles = {
        Need.TORCH: "" if torch.get("available") else torch.get("error") or "PyTorch finds no CUDA device.",
        Need.TWO_GPUS: "" if devices >= 2 else f"{devices} GPU is reserved, two are required.",
        Need.MPS: facts.get("mps", {}).get("obstacle", "Unknown."),
        Need.EVICTION: _eviction_obstacle(evictions),
        Need.COMPILER: "" if facts.get("triton") and facts.get("compiler") else "Triton or a C compiler is missing.",
        Need.TENSORRT: "" if facts.get("tensorrt") else "TensorRT is not installed: pip install tensorrt",
        Need.VIDEO: "" if facts.get("pyav") else "PyAV is not installed: pip install av",
        Need.NVIDIA_SMI: "" if facts.get("nvidia_smi") else "nvidia-smi is not installed.",
    }
    return next((obstacles[need] for need in needs if obstacles[need]), "")


def _eviction_obstacle(rows: Mapping[str, Any]) -> str:
    from workers.resources.nodes import eviction_policy

    if not rows.get("code"):
        return "" if rows else "Unknown."
    return str(eviction_policy.CANNOT[rows["code"]]) % {"detail": rows.get("detail", "")}
