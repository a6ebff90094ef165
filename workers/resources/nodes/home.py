"""Sections of the home page about nodes: alarms, and the state of the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.sections import Section
from workers.core.models import Node, Severity
from workers.resources.clusters import cpu_slots
from workers.resources.monitoring import alarms
from workers.resources.nodes import nodes

WARNING_PERCENT = 90  # of a usage that is shown as a warning
DOWN = {Node.State.UNREACHABLE, Node.State.LOST}
MAX_ALARMS = 3


def raised_alarms(user: User) -> dict[str, Any] | None:
    """Return the alarms that need attention now: {count, rows}."""
    rows = [alarm for alarm in alarms.raised_for(user) if alarm.severity != Severity.INFO]
    return {"count": len(rows), "rows": rows[:MAX_ALARMS]} if rows else None


def cluster_status(user: User) -> dict[str, Any]:
    """Return free and busy GPUs (CPU slots without GPUs), nodes that are down, and the mean usage."""
    views = nodes.view_all(user)
    gpus = [gpu for view in views for gpu in view.gpus]
    used = sum(view.sample.get("memory_used_mib") or 0 for view in views)
    total = sum(view.sample.get("memory_total_mib") or 0 for view in views)
    cpus = [view.cpu.device for view in views if view.cpu and view.node.state == Node.State.LIVE]
    return {
        "nodes": len(views),
        "live": sum(view.node.state == Node.State.LIVE for view in views),
        "down": [view.node for view in views if view.node.state in DOWN],
        "gpus": len(gpus),
        "free_gpus": sum(view.free_gpus for view in views),
        "busy_gpus": sum(gpu.device.used > 0 for gpu in gpus),
        "slots": cpu_slots.for_devices(cpus),
        "simulated": any(view.simulated for view in views),
        "usages": [
            *([_usage(_("GPU usage"), _mean(gpu.util for gpu in gpus))] if gpus else []),
            _usage(_("CPU usage"), _mean(view.sample.get("cpu_percent") for view in views)),
            _usage(_("Memory usage"), 100 * used / total if total else None),
        ],
    }


def _usage(label: Any, percent: float | None) -> dict[str, Any]:
    hue = "" if percent is None else "is-wait" if percent >= WARNING_PERCENT else "is-run"
    return {"label": label, "percent": percent, "hue": hue}


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


ALARMS = Section(
    "alarms", "home/_alarms.html", raised_alarms, needs=Action.CLUSTER_MANAGE, order=5, column="top", live=True
)
CLUSTER = Section(
    "cluster", "home/_cluster.html", cluster_status, needs=Action.CLUSTER_VIEW, order=20, column="side", live=True
)
