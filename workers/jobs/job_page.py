"""Context of job pages; pages of every kind include its parts (templates/workers/_job_*.html)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch
from django.utils.functional import SimpleLazyObject
from django.utils.timezone import now

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.registry import Registry
from workers.core import disk_limits, kinds, run_time
from workers.core.models import Allocation, Attempt, Device, Job, JobEvent
from workers.core.states import JobState
from workers.jobs import buttons, holders, job_tabs
from workers.resources.clusters import cluster_use

EVENTS_SHOWN = 200
NEWEST_EVENTS = 6  # on the overview
#: Columns that a table of jobs shows.
SHOWN = (
    "kind", "name", "state", "owner__username", "owner__nickname", "cluster__name", "message", "wait_code",
    "wait_args", "progress", "eta_s", "phase", "phase_done", "phase_total", "started_at", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The devices a job holds, or held, on one node."""

    node: Any
    devices: list[Device]
    rank: int

    @property
    def simulated(self) -> bool:
        return any(device.simulated for device in self.devices)

    @property
    def words(self) -> str:
        """ "gpu 0, 1" or "cpu"."""
        cards = [str(device.index) for device in self.devices if device.kind == Device.Kind.GPU]
        return f"gpu {', '.join(cards)}" if cards else "cpu"


@dataclass(frozen=True)
class Panel:
    """A part of every job's page that a room above adds, from its app's `AppConfig.ready()`.

    Attributes:
        name: a slug, in the address under which the part is fetched again.
        template: a partial; it gets `job` and, as `panel`, what `context` answers.
        context: what it shows of a job to a person who may see the job; None shows nothing until the job moves. With
            a true "refresh" the part is fetched again every 5 s, because it shows what changes without the job.
        order: place among the panels; equal ones by name.
        tab: the tab that it stands in, see workers.jobs.job_tabs.
        also: another one.
    """

    name: str
    template: str
    context: Callable[[Job, User], dict[str, Any] | None]
    order: int = 100
    tab: str = job_tabs.OVERVIEW
    also: str = ""


@dataclass(frozen=True)
class ShownPanel:
    """A panel with what it shows of one job to one person; None where it has nothing to show now."""

    name: str
    template: str
    shown: dict[str, Any] | None


PANELS: Registry[Panel] = Registry("panel of job pages", order=lambda panel: (panel.order, panel.name))


def panels(job: Job, user: User, *, tab: str = "", only: str = "") -> list[ShownPanel]:
    """What rooms above add to the page of this job, in order: to one tab, or the one panel that is wanted."""
    wanted = [panel for panel in PANELS if only in {"", panel.name} and (not tab or tab in {panel.tab, panel.also})]
    return [ShownPanel(panel.name, panel.template, panel.context(job, user)) for panel in wanted]


def context(job: Job, user: User) -> dict[str, Any]:
    """Context of `_job_header.html`, `_log.html`, `_charts.html` and `_events.html`.

    Keys: job, kind_label, kind_icon, buttons, force, may_control, again, may_urgent, places, attempts, attempt,
    runtime, limit, disk_limit, borrowed, time_requested, holders, events. `runtime` is a timedelta or None,
    `disk_limit` bytes or None. Places and events are read when a template shows them. The caller checked that the
    person may see it.
    """
    may_control = user.can(Action.JOBS_CONTROL) and (job.owner_id == user.pk or user.sees_everything)
    attempts = list(job.attempts.order_by("-number"))
    newest = attempts[0] if attempts else None
    return {
        "job": job,
        "kind_label": kinds.label_of(job.kind),
        "kind_icon": kinds.icon_of(job.kind),
        "buttons": buttons.shown(job),
        "force": buttons.force(job, user),
        "may_urgent": user.can(Action.JOBS_URGENT),
        "may_control": may_control,
        "again": buttons.again(job, user, may_control=may_control),
        "places": SimpleLazyObject(lambda: places(newest) if newest else []),
        "attempts": attempts,
        "attempt": newest,
        "runtime": _runtime(job, newest),
        "limit": run_time.runtime(job),
        "disk_limit": disk_limits.limit_bytes(job),
        "borrowed": cluster_use.is_borrowed(job),
        "time_requested": not job.is_final and job.time_requests.filter(answer="open").exists(),
        "holders": holders.holders_of(job, user, now()),
        "events": SimpleLazyObject(lambda: events(job)),
    }


def events(job: Job, limit: int = EVENTS_SHOWN) -> list[JobEvent]:
    """The job's events, newest first."""
    rows = narrow(job.events.select_related("by"), by=USER_NAMES)
    return list(rows.order_by("-pk")[:limit])


def places(attempt: Attempt) -> list[Place]:
    """Where an attempt runs or ran, by node."""
    nodes: dict[int, Place] = {}
    for held in attempt.allocations.select_related("node", "device").order_by("rank", "device__index"):
        nodes.setdefault(held.node_id, Place(held.node, [], held.rank)).devices.append(held.device)
    return list(nodes.values())


def with_places(jobs: Any) -> Any:
    """`jobs` with owner, cluster, the row of their kind and the devices they hold now, for lists."""
    return jobs.select_related("owner", "cluster", *kinds.related()).prefetch_related(_live_attempts())


def for_table(jobs: Any) -> Any:
    """`jobs` with what a table of jobs shows, devices included; other columns are read when they are needed."""
    return jobs.select_related("owner", "cluster").only(*SHOWN).prefetch_related(_live_attempts())


def _live_attempts() -> Prefetch:
    live = Allocation.objects.filter(released_at=None).select_related("node", "device").order_by("device__index")
    live = live.only("attempt", "node__name", "device__kind", "device__index", "device__simulated")
    attempts = Attempt.objects.filter(ended_at=None).prefetch_related(Prefetch("allocations", live))
    return Prefetch("attempts", attempts, "live_attempts")


def _runtime(job: Job, attempt: Attempt | None) -> Any:
    if attempt is None or attempt.started_at is None or job.state == JobState.QUEUED:
        return None
    return (attempt.ended_at or now()) - attempt.started_at
