"""Checks of a running job on a GPU: telemetry, pause, stop, eviction by the driver."""

from __future__ import annotations

import subprocess
import time
from statistics import mean

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context, NotAvailable, Values
from workers.execution.agent import eviction_proof
from workers.execution.measurement_jobs import MeasurementJob
from workers.resources.nodes.telemetry.nvml import find_probe
from workers.resources.nodes.telemetry.probe import Probe, Reading
from workers.supervisor import processes

PIECES = 32  # of 64 MiB
SMI_FIELDS = ("memory.used", "utilization.gpu", "temperature.gpu", "power.draw")
SMI_S = 10.0
SETTLE_S = 1.5  # the driver's utilization is a mean over its last second


def telemetry(context: Context) -> Values:
    """Compare the platform's readings of a busy GPU with those of nvidia-smi, and find the job's own memory."""
    if context.devices[0].parent is not None:
        raise NotAvailable("nvidia-smi does not report the load of MIG slices.")
    probe, job = find_probe(), _computing(context)
    time.sleep(SETTLE_S)
    ours, theirs = [], []
    for _ in range(5):
        ours.append(_reading(context, probe))
        theirs.append(_smi(context))
        time.sleep(0.5)
    pid = job.supervisor_pid()
    own = processes.descendants(pid) if pid else []
    held = [mib for process, mib in ours[-1].processes.items() if process in own]
    job.kill()
    values: dict[str, float] = {
        "memory": abs(mean(r.memory_used_mib or 0 for r in ours) - mean(row["memory.used"] for row in theirs)),
        "util": abs(mean(r.util or 0 for r in ours) - mean(row["utilization.gpu"] for row in theirs)),
        "temperature": abs(mean(r.temperature_c or 0 for r in ours) - mean(row["temperature.gpu"] for row in theirs)),
    }
    if power_w := mean(row["power.draw"] for row in theirs):
        values["power"] = abs(mean(r.power_w or 0 for r in ours) / power_w - 1)
    return {name: round(value, 3) for name, value in values.items()} | ({"own_mib": round(sum(held))} if held else {})


def pause(context: Context) -> Values:
    """Pause a computing job, let it go on, and stop it; watch utilization and memory of the GPU."""
    probe = find_probe()
    before = _memory(context, probe)
    job = _computing(context)
    busy, held = _load(context, probe), _memory(context, probe)
    job.request("pause")
    job.wait_for(lambda: job.status().get("state") == "paused", "the program is not paused", context.seconds)
    paused, held_paused = _load(context, probe), _memory(context, probe)
    job.request("run")
    job.wait_for(lambda: job.status().get("state") == "running", "the program does not continue", context.seconds)
    again = _load(context, probe)
    began = time.monotonic()
    job.request("stop")
    job.wait_for(job.has_ended, "the program does not stop", context.seconds)
    stopped_s = time.monotonic() - began
    deadline = time.monotonic() + 10
    while _memory(context, probe) > before + 64 and time.monotonic() < deadline:
        time.sleep(0.2)
    return {
        "busy": busy, "paused": paused, "again": again, "held": held - before, "moved": abs(held_paused - held),
        "left": _memory(context, probe) - before, "stopped_s": round(stopped_s, 2),
    }  # fmt: skip


def eviction(context: Context) -> Values:
    """Train, move the training off the GPU, let another program fill the GPU, continue, and compare every loss."""
    card = context.devices[0]
    if card.parent is not None:
        raise NotAvailable("The GPU is a MIG slice.")
    readings = eviction_proof.prove(find_probe(), card, folder=context.folder)
    return {
        "held_mib": readings.held_mib, "freed": round(readings.freed_mib / max(1.0, readings.held_mib), 3),
        "filled": round(readings.filled_mib / card.memory_mib, 3), "out_s": readings.out_s, "back_s": readings.back_s,
        "steps": readings.steps,
    }  # fmt: skip


def _computing(context: Context) -> MeasurementJob:
    job = jobs.start(context, "share.py", context.device, PIECES)
    job.wait_for_line("computing", context.seconds)
    return job


def _reading(context: Context, probe: Probe) -> Reading:
    return next(reading for reading in probe.read() if reading.index == context.devices[0].index)


def _memory(context: Context, probe: Probe) -> float:
    return _reading(context, probe).memory_used_mib or 0.0


def _load(context: Context, probe: Probe) -> float:
    """Mean utilization of the first GPU over two seconds, in percent, once the driver's mean has settled."""
    time.sleep(SETTLE_S)
    readings = []
    for _ in range(8):
        readings.append(_reading(context, probe).util or 0.0)
        time.sleep(0.25)
    return round(mean(readings), 1)


def _smi(context: Context) -> dict[str, float]:
    command = ["nvidia-smi", f"--id={context.devices[0].uuid}", f"--query-gpu={','.join(SMI_FIELDS)}"]
    done = subprocess.run(
        [*command, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=SMI_S, check=True
    )
    return dict(zip(SMI_FIELDS, map(_number, done.stdout.strip().split(",")), strict=True))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "[N/A]": this GPU has no such sensor
        return 0.0
