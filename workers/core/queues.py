"""The only file that knows Celery queue names."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def cpu(node: str) -> str:
    """Queue of a node's CPU worker."""
    return f"{node}.cpu"


def gpu(node: str, index: int) -> str:
    """Queue of the jobs whose first GPU is this one of a node."""
    return f"{node}.gpu{index}"


def work(node: str) -> str:
    """Queue for what may take minutes (unpacking, exports, thumbnails): it never delays the start of a job."""
    return f"{node}.work"


def start_worker_command(node: str, gpus: Sequence[int] = ()) -> list[str]:
    """The Celery worker that starts a node's jobs, from the CPU queue and from that of each GPU.

    One process without children: each start takes a fraction of a second, and its time limit needs the main thread.
    """
    queues = ",".join([cpu(node), *(gpu(node, index) for index in gpus)])
    return [*_worker(f"cpu@{node}", queues), "--pool", "solo"]


def work_worker_command(node: str, processes: int = 2) -> list[str]:
    """The Celery worker for long work: one process, and up to `processes` while tasks wait."""
    return [*_worker(f"work@{node}", work(node)), "--autoscale", f"{processes},1"]


def _worker(name: str, queue: str) -> list[str]:
    celery = [sys.executable, "-m", "celery", "--app", "aiplatform.celery", "--quiet", "worker"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "warning"]
    return [*celery, "--hostname", name, "--queues", queue, *quiet]
