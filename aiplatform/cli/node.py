"""Processes of a node, which `up` and `join` both run."""

from __future__ import annotations

import sys

from aiplatform import env
from aiplatform.cli import output
from aiplatform.cli.processes import REFUSED_CODE, Process
from workers import queues
from workers.machines.telemetry import sampler

__all__ = ["REFUSED_CODE", "processes"]

MANAGE = str(env.BASE_DIR / "manage.py")


def processes() -> list[Process]:
    """Return the agent, the relay, and Celery workers for processor jobs, for long work, and one for each card."""
    found = [
        Process("agent", [sys.executable, MANAGE, "agent"], colour="33"),
        Process("exec_relay", [sys.executable, MANAGE, "exec_relay"], colour="90"),
        Process("cpu", queues.cpu_worker_command(env.NODE), colour="32"),
        Process("work", queues.work_worker_command(env.NODE), colour="34"),
    ]
    for card in sampler.open_probe(env.FAKE_GPUS, env.FAKE_NPUS).cards():
        if card.kind != "gpu":
            continue  # started by the processor worker: nothing there to bind to a card
        visible = {"CUDA_VISIBLE_DEVICES": str(card.index) if card.parent is None else card.uuid}
        colour = output.COLOURS[card.index % len(output.COLOURS)]
        command = queues.gpu_worker_command(env.NODE, card.index)
        found.append(Process(f"gpu{card.index}", command, env=visible, colour=colour))
    for process in found:
        process.env.setdefault("AIP_BOOTSTRAP", "0")
    return found
