"""The only file that knows Celery queue names."""

from __future__ import annotations

import sys


def cpu(node: str) -> str:
    """Queue of a node's CPU worker."""
    return f"{node}.cpu"


def gpu(node: str, index: int) -> str:
    """Queue of the worker bound to one GPU of a node."""
    return f"{node}.gpu{index}"


def work(node: str) -> str:
    """Queue for what may take minutes (unpacking, exports, thumbnails): it never delays the start of a job."""
    return f"{node}.work"


def cpu_worker_command(node: str) -> list[str]:
    """The Celery worker that starts a node's CPU jobs; each start takes a fraction of a second."""
    return [*_worker(f"cpu@{node}", cpu(node)), "--pool", "solo"]


def work_worker_command(node: str, processes: int = 2) -> list[str]:
    """The Celery worker for long work."""
    return [*_worker(f"work@{node}", work(node)), "--concurrency", str(processes)]


def gpu_worker_command(node: str, index: int) -> list[str]:
    """The Celery worker bound to one GPU; it starts supervisors, so one process without children will do."""
    return [*_worker(f"gpu{index}@{node}", gpu(node, index)), "--pool", "solo"]


def _worker(name: str, queue: str) -> list[str]:
    celery = [sys.executable, "-m", "celery", "--app", "aiplatform.celery", "--quiet", "worker"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "warning"]
    return [*celery, "--hostname", name, "--queues", queue, *quiet]
