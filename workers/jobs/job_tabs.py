"""Tabs of a job's page: the same for every kind, chosen by `?tab=`, so that each has an address and needs no script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

OVERVIEW, CONSOLE, METRICS = "overview", "console", "metrics"
PORTS, FILES, EVENTS, SPEC = "ports", "files", "events", "spec"


@dataclass(frozen=True)
class Tab:
    """One tab: its word in the address, what people read, and the part of the page below the tabs."""

    name: str
    label: Any
    template: str


TABS = (
    Tab(OVERVIEW, _("Overview"), "workers/tabs/_overview.html"),
    Tab(CONSOLE, _("Console"), "workers/tabs/_console.html"),
    Tab(METRICS, _("Metrics"), "workers/tabs/_metrics.html"),
    Tab(PORTS, _("Ports"), "workers/tabs/_ports.html"),
    Tab(FILES, _("Files"), "workers/tabs/_files.html"),
    Tab(EVENTS, _("Events"), "workers/tabs/_events.html"),
    Tab(SPEC, _("Spec"), "workers/tabs/_spec.html"),
)


def find(name: str) -> Tab:
    """Return the tab of this name; the first one if there is none."""
    return next((tab for tab in TABS if tab.name == name), TABS[0])


def path(job_id: int, name: str) -> str:
    """Address of one tab of a job's page, whatever its kind."""
    return f"{reverse('workers:job', args=[job_id])}?tab={name}"
