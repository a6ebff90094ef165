"""Checks of several jobs on one GPU: memory of shares, out of memory, throughput in turns and by MPS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from aiplatform.cli.gpu_report import jobs
from aiplatform.cli.gpu_report.definitions import Context, Values
from workers.execution import mps_gain
from workers.execution.measurement_jobs import MeasurementJob
from workers.jobs.output import causes
from workers.resources.nodes.telemetry.nvml import find_probe

SHARES = (2, 4)  # eighths of the GPU
EVERYTHING = 100_000  # pieces of 64 MiB: more than any GPU has
TURNS, BY_MPS = (1, 2, 4, 8), (2, 4, 8)
COMPARED = 4
ROUND_S, SAMPLE_S = 2.0, 0.25
#: Takes memory by the driver's own limit alone: PyTorch is not told of a share.
GREEDY = """
import pathlib, sys, time, torch
held = []
try:
    while True:
        held.append(torch.ones(16 << 20, device="cuda"))
except torch.OutOfMemoryError:
    pass
print("ready", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
total = torch.cuda.get_device_properties(0).total_memory >> 20
assert 64 * len(held) <= total // 4, (len(held), total)
print("steps", len(held), flush=True)
"""


def memory(context: Context) -> Values:
    """Let two jobs take all they get at the same time, on a quarter and on half of the GPU."""
    card = context.devices[0]
    values: dict[str, float] = {}
    running = {eighths: _share(context, eighths, EVERYTHING) for eighths in SHARES}
    for eighths, job in running.items():
        held_mib = float(job.wait_for_line("held", context.seconds)[0])
        values[f"used_{eighths}"] = round(held_mib / (card.memory_mib * eighths / 8), 3)
    return values


def out_of_memory(context: Context) -> Values:
    """Let a job allocate beyond its share: it must fail, and its log must name the cause."""
    job = _share(context, 1, EVERYTHING, "overflow")
    job.wait_for(job.has_ended, "the program does not exit", context.seconds)
    named = [cause.message.code for cause in causes.in_text(job.log())]
    return {"code": job.exit_code() or 0, "cause": "cause.card_memory" in named}


def turns(context: Context) -> Values:
    """Let 1, 2, 4 and 8 jobs compute at the same time without MPS."""
    card, values = context.devices[0], {}
    for clients in TURNS:
        with _mean_load(card.index) as load:
            values[f"steps_{clients}"] = mps_gain.together(
                context.folder / str(clients), card, clients, ROUND_S, mps_gain.STEPS, None
            )
        values[f"load_{clients}"] = load[0]
    values["kept"] = round(values["steps_8"] / values["steps_1"], 3)
    return values


def mps(context: Context) -> Values:
    """Let 2, 4 and 8 jobs compute by MPS, compare 4 with 4 that take turns, and hold 4 to their share of the memory."""
    card = context.devices[0]
    together = partial(mps_gain.together, card=card, seconds=ROUND_S)
    values = {"turns": together(context.folder / "turns", clients=COMPARED, program=mps_gain.STEPS, daemon=None)}
    with mps_gain.daemon_for(card) as daemon:
        for clients in BY_MPS:
            home = context.folder / f"mps-{clients}"
            values[f"steps_{clients}"] = together(home, clients=clients, program=mps_gain.STEPS, daemon=daemon)
        pieces = together(context.folder / "greedy", clients=4, program=GREEDY, daemon=daemon)
    values["ratio"] = round(values[f"steps_{COMPARED}"] / values["turns"], 3)
    return values | {"limited": pieces > 0}


def _share(context: Context, eighths: int, pieces: int, *more: str) -> MeasurementJob:
    env = {"AIP_GPU_MEMORY_FRACTION": str(eighths / 8)}
    return jobs.start(context, "share.py", context.device, pieces, *more, env=env)


@contextmanager
def _mean_load(index: int) -> Iterator[list[float]]:
    """The utilization of a GPU while the block runs, in percent, as its first element afterwards.

    It is the mean of the busier half of the readings: in the other half the programs start.
    """
    probe, over, peak, mean = find_probe(), threading.Event(), [0.0], [0.0]

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            peak.extend(reading.util or 0.0 for reading in probe.read() if reading.index == index)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield mean
    finally:
        over.set()
        watcher.join()
        mean[0] = round(sum(sorted(peak)[len(peak) // 2 :]) / max(1, len(peak) - len(peak) // 2), 1)
