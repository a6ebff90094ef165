"""Processes of a node, which `up` and `join` both run."""

from __future__ import annotations

import sys

from aiplatform import env
from aiplatform.cli.processes import REFUSED_CODE, Process
from aiplatform.cli.runtime import MANAGE, Runtime
from workers.core import queues
from workers.resources.nodes.telemetry import sampler

__all__ = ["REFUSED_CODE", "processes"]


def processes(runtime: Runtime) -> list[Process]:
    """Return agent, relay, the Celery worker that starts jobs, and the one for long tasks.

    Each GPU has a queue of its own; one process serves them all, since starting a job takes a fraction of a second and
    the agent starts those that wait. Long tasks have another process: an import that unpacks for minutes must not
    delay the start of a job.
    """
    gpus = [
        card.index for card in sampler.open_probe(env.FAKE_GPUS, env.FAKE_NPUS).cards() if card.kind == "gpu"
    ]  # other kinds are started by the CPU queue: nothing there to bind to a device
    return [
        runtime.role("agent", [sys.executable, MANAGE, "agent"], colour="33"),
        runtime.role("exec_relay", [sys.executable, MANAGE, "exec_relay"], colour="90"),
        runtime.role("cpu", queues.start_worker_command(env.NODE, gpus), colour="32"),
        runtime.role("work", queues.work_worker_command(env.NODE), colour="34"),
    ]
