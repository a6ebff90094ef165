"""Checks of the hardware itself: published rates, collectives between GPUs."""

from __future__ import annotations

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context, Values
from workers.execution import gang_environment
from workers.resources.nodes import card_catalogue

SIDE = 8192
MESSAGE_MIB = 256


def rates(context: Context, side: int = SIDE) -> Values:
    """Measure matrix rates and memory bandwidth, as shares of what the device catalog says."""
    measured = jobs.run(context, "rates.py", context.device, side)
    values = {name: round(value, 2) for name, value in measured.items()}
    specification = card_catalogue.find(context.devices[0].name) if context.devices else None
    if specification is None:
        return values
    pairs = (
        ("float32_tflops", specification.fp32),
        ("bfloat16_tflops", specification.mixed),
        ("memory_gb_s", specification.bandwidth),
    )
    return values | {f"{name}_share": round(measured[name] / peak, 3) for name, peak in pairs if peak}


def collectives(context: Context, size_mib: float = MESSAGE_MIB) -> Values:
    """Run two ranks as those of a distributed job, with NCCL between GPUs (tests: gloo between CPUs)."""
    program = (jobs.PROGRAMS / "ranks.py").read_text()
    backend = "gloo" if context.device == "cpu" else "nccl"
    env = {"PROGRAM": program} | gang_environment.for_rank(0, "127.0.0.1")
    measured = jobs.run(context, "ranks.py", backend, 2, size_mib, devices=context.devices[:2], env=env)
    groups = {card.group for card in context.devices[:2]}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in measured.items()} | {
        "group": len(groups) < 2
    }
