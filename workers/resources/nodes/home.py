"""Sections of the home page about nodes: alarms, the state of the cluster, and for operators counts and each node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.units import MIB_PER_GIB
from aiplatform.pages.home.sections import Section
from workers.core.models import Job, Node, Severity
from workers.core.states import FINAL, JobState
from workers.resources.clusters import cpu_slots
from workers.resources.monitoring import alarms
from workers.resources.nodes import nodes

WARNING_PERCENT = 90  # of a usage that is shown as a warning
DOWN = {Node.State.UNREACHABLE, Node.State.LOST}
MAX_ALARMS = 3
MAX_NODES = 12
BYTES_PER_GIB = 1 << 30
FAILURES_SPAN = timedelta(hours=24)


def raised_alarms(user: User) -> dict[str, Any] | None:
    """Return the alarms that need attention now: {count, rows}."""
    rows = [alarm for alarm in alarms.raised_for(user) if alarm.severity != Severity.INFO]
    return {"count": len(rows), "rows": rows[:MAX_ALARMS]} if rows else None


def cluster_counts(user: User) -> dict[str, Any]:
    """Return what an operator checks first, each with the page that shows it: {counts: [{label, count, url, hue}]}."""
    failed = Q(state__in=(JobState.FAILED, JobState.LOST), ended_at__gt=now() - FAILURES_SPAN)
    jobs = Job.objects.visible_to(user).aggregate(
        running=Count("pk", filter=~Q(state__in=(*FINAL, JobState.QUEUED))),
        queued=Count("pk", filter=Q(state=JobState.QUEUED)),
        failed=Count("pk", filter=failed),
    )
    states = list(Node.objects.visible_to(user).exclude(state=Node.State.REMOVED).values_list("state", flat=True))
    live, alerts = states.count(Node.State.LIVE), raised_alarms(user)
    queue, tasks = reverse("workers:queue"), reverse("workers:tasks")
    return {
        "counts": [
            _count(_("Active alerts"), alerts["count"] if alerts else 0, reverse("workers:alarms"), is_bad=True),
            _count(_("Running jobs"), jobs["running"], queue),
            _count(_("Queued jobs"), jobs["queued"], queue),
            _count(_("Failed in 24 hours"), jobs["failed"], f"{tasks}?state=failed", is_bad=True),
            {"label": _("Live nodes"), "count": live, "of": len(states), "url": reverse("workers:resources"),
             "hue": "fail-text" if live < len(states) else ""},
        ]
    }  # fmt: skip


def _count(label: Any, count: int, url: str, *, is_bad: bool = False) -> dict[str, Any]:
    return {"label": label, "count": count, "url": url, "hue": "fail-text" if is_bad and count else ""}


def node_usage(user: User) -> dict[str, Any] | None:
    """Return the nodes with the use of GPUs, CPU, memory and disk: {rows: [{view, uses}], more, gpus}."""
    views = nodes.view_all(user)
    if not views:
        return None
    rows = [{"view": view, "uses": uses_of(view)} for view in views[:MAX_NODES]]
    return {"rows": rows, "more": len(views) > MAX_NODES, "gpus": any(view.gpus for view in views)}


def uses_of(view: nodes.NodeView) -> list[dict[str, Any]]:
    """Return GPU, CPU, memory and disk of a node in percent with the amounts; None where it reports nothing.

    The GPU is the first, so that pages can leave it out of nodes without one.
    """
    sample = view.sample
    memory_mib, disk_bytes = sample.get("memory_total_mib"), sample.get("disk_total_bytes")
    free = _("%(free)s of %(all)s free") % {"free": view.free_gpus, "all": len(view.gpus)}
    return [
        _usage(_("GPU"), _mean(gpu.util for gpu in view.gpus), free),
        _usage(_("CPU"), sample.get("cpu_percent"), view.load_word),
        _share(_("Memory"), (sample.get("memory_used_mib") or 0) / MIB_PER_GIB, (memory_mib or 0) / MIB_PER_GIB),
        _share(
            _("Disk"),
            ((disk_bytes or 0) - (sample.get("disk_free_bytes") or 0)) / BYTES_PER_GIB,
            (disk_bytes or 0) / BYTES_PER_GIB,
        ),
    ]


def cluster_status(user: User) -> dict[str, Any] | None:
    """Return free and busy GPUs (CPU slots without GPUs), nodes that are down, and the mean usage.

    None for operators, who see each node.
    """
    views = nodes.view_all(user)
    if views and user.can(Action.CLUSTER_MANAGE):
        return None
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


def _usage(label: Any, percent: float | None, amount: Any = "") -> dict[str, Any]:
    hue = "" if percent is None else "is-wait" if percent >= WARNING_PERCENT else "is-run"
    return {"label": label, "percent": percent, "hue": hue, "amount": amount}


def _share(label: Any, used_gib: float, all_gib: float) -> dict[str, Any]:
    if not all_gib:
        return _usage(label, None)
    return _usage(label, 100 * used_gib / all_gib, f"{used_gib:.1f} / {all_gib:.1f} GiB")


def _mean(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


ALARMS = Section(
    "alarms", "home/_alarms.html", raised_alarms, needs=Action.CLUSTER_MANAGE, order=5, column="top", live=True
)
CLUSTER = Section(
    "cluster", "home/_cluster.html", cluster_status, needs=Action.CLUSTER_VIEW, order=20, column="side", live=True
)
COUNTS = Section(
    "counts", "home/_counts.html", cluster_counts, needs=Action.CLUSTER_MANAGE, order=6, column="top", live=True
)
NODES = Section("nodes", "home/_nodes.html", node_usage, needs=Action.CLUSTER_MANAGE, order=15, live=True)
