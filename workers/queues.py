"""The only file that knows Celery queue names."""

from __future__ import annotations


def cpu(node: str) -> str:
    """Queue of a node's CPU worker."""
    return f"{node}.cpu"


def gpu(node: str, index: int) -> str:
    """Queue of the worker bound to one GPU of a node."""
    return f"{node}.gpu{index}"
