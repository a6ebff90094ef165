"""The start page: workflow, own jobs, machines, counts of states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.frame.navigation import exists
from aiplatform.lib.columns import narrow
from aiplatform.templatetags.ui import CHIPS
from annotation.models import AnnotationProject
from annotation.services import todo
from datasets.models import Dataset, DatasetVersion
from inference.pipelines.models import Pipeline
from inference.registry.models import Model
from workers.core import kinds
from workers.core.kinds import KINDS, JobKind
from workers.core.models import Job, Node, Severity
from workers.core.states import FINAL, JobState
from workers.resources.clusters import cpu_slots
from workers.resources.monitoring import alarms
from workers.resources.nodes import nodes

MY_JOBS = 8  # rows before "all of them"
BUSY = 90  # percent of processor or memory from which a figure is shown as a warning


@dataclass(frozen=True)
class Start:
    """The act that a step begins with, for those who have nothing of it yet."""

    label: Any
    path: str
    needs: Action
    possible: Callable[[User], bool]  # whether what it works on is there


@dataclass(frozen=True)
class Step:
    """A step of the workflow from images to a model in use."""

    label: Any
    hint: Any
    icon: str
    path: str
    needs: Action
    count: Callable[[User], int]  # how many things of it this person may see
    order: int
    start: Start | None = None
    beside: bool = False  # no step of the way itself, but something that goes it


def _visible(model: Any) -> Callable[[User], int]:
    return lambda user: model.objects.visible_to(user).count()


def _annotatable(user: User) -> bool:
    """Whether there are images, none of them annotated: those can be trained on at once."""
    annotated = DatasetVersion.objects.visible_to(user).order_by().values_list("annotated", flat=True).distinct()
    return set(annotated) == {False}


STEPS = (
    Step(
        _("Datasets"),
        _("Upload images"),
        "datasets",
        "/datasets/",
        Action.DATASETS_VIEW,
        _visible(Dataset),
        order=20,
        start=Start(_("Upload images"), "/datasets/new/", Action.DATASETS_CREATE, lambda user: True),
    ),
    Step(
        _("Annotation"),
        _("Draw boxes and polygons"),
        "annotation",
        "/annotation/",
        Action.ANNOTATION_VIEW,
        _visible(AnnotationProject),
        order=30,
        start=Start(_("Annotate images"), "/annotation/projects/new/", Action.ANNOTATION_MANAGE, _annotatable),
    ),
    Step(_("Models"), _("Trained models"), "models", "/models/", Action.MODELS_VIEW, _visible(Model), order=50),
    Step(
        _("Pipelines"),
        _("Automate these steps"),
        "pipeline",
        "/pipelines/",
        Action.JOBS_VIEW,
        _visible(Pipeline),
        order=90,
        beside=True,
    ),
)

#: states people see → states of the job, in the order of the bar
WORDS: tuple[tuple[str, tuple[JobState, ...]], ...] = (
    ("queued", (JobState.QUEUED, JobState.ASSIGNED, JobState.STARTING, JobState.PREEMPTING)),
    ("running", (JobState.RUNNING, JobState.FINISHING, JobState.STOPPING)),
    ("paused", (JobState.PAUSED,)),
    ("succeeded", (JobState.SUCCEEDED, JobState.FINISHED_EARLY)),
    ("failed", (JobState.FAILED, JobState.LOST)),
    ("stopped", (JobState.STOPPED,)),
)


def _listed() -> list[JobKind]:
    """Kinds of jobs that have a list of their own."""
    return [kind for kind in KINDS if kind.list_path()]


def _step(kind: JobKind) -> Step:
    start = None
    if kind.start_page:
        start = Start(kind.start_word, reverse(kind.start_page), kind.submit_action, kind.startable)
    label, path = kind.plural_label(), kind.list_path()
    return Step(label, kind.hint, kind.icon, path, kind.view_action, kind.count, kind.order, start)


def _way(user: User) -> list[Step]:
    """The steps that this person may see, in their order."""
    of_kinds = (_step(kind) for kind in _listed() if kind.step)
    steps = sorted((*STEPS, *of_kinds), key=lambda step: step.order)
    return [step for step in steps if user.can(step.needs) and exists(step.path)]


def steps(user: User) -> dict[str, Any]:
    """Return the workflow: main steps [{label, hint, icon, url, count, next}], further steps, and the next action.

    The next action is that of the first step without results that the user could start now: it leads new users from
    images to a deployed model. It is None after the last step.
    """
    counted = [(step, step.count(user)) for step in _way(user)]
    open_ = (
        step
        for step, count in counted
        if not count and step.start and user.can(step.start.needs) and step.start.possible(user)
    )
    following = next(open_, None)
    rows = [
        {"label": step.label, "hint": step.hint, "icon": step.icon, "url": step.path, "count": count,
         "next": step is following, "beside": step.beside}
        for step, count in counted
    ]  # fmt: skip
    return {
        "steps": [row for row in rows if not row["beside"]],
        "beside": [row for row in rows if row["beside"]],
        "next": following.start if following else None,
    }


def annotating(user: User) -> dict[str, Any]:
    """Return the context of templates/annotation/_todo.html: datasets to go on annotating."""
    return {"todo": todo.for_user(user) if user.can(Action.ANNOTATION_ANNOTATE) else []}


def my_jobs(user: User) -> dict[str, Any]:
    """The person's waiting and running jobs, newest first: {rows: [{job, url, kind, icon}], more}."""
    live = Job.objects.filter(owner=user).exclude(state__in=FINAL).select_related("cluster", *kinds.related())
    live = narrow(live, cluster=("name",), **dict.fromkeys(kinds.related(), ()))
    jobs = list(live.order_by("-pk")[: MY_JOBS + 1])
    rows = [
        {"job": job, "url": kinds.url_of(job), "kind": kinds.label_of(job.kind), "icon": kinds.icon_of(job.kind)}
        for job in jobs[:MY_JOBS]
    ]
    return {"rows": rows, "more": len(jobs) > MY_JOBS}


def _mean(metrics: Iterable[float | None]) -> float | None:
    values = [value for value in metrics if value is not None]
    return sum(values) / len(values) if values else None


def _gauge(label: Any, value: float | None, text: str = "") -> dict[str, Any]:
    """Return a value in percent for the page; amber from 90 %."""
    hue = "" if value is None else "is-wait" if value >= BUSY else "is-run"
    return {"label": label, "value": value, "hue": hue, "words": text}


def cluster(user: User) -> dict[str, Any] | None:
    """The machines at a glance, or None for those who may not see them."""
    if not user.can(Action.CLUSTER_VIEW):
        return None
    views = nodes.view_all(user)
    cards = [card for view in views for card in view.gpus]
    used = sum(view.sample.get("memory_used_mib") or 0 for view in views)
    there = sum(view.sample.get("memory_total_mib") or 0 for view in views)
    processors = [view.cpu.device for view in views if view.cpu and view.node.state == Node.State.LIVE]
    silent = [view.node for view in views if view.node.state in {Node.State.UNREACHABLE, Node.State.LOST}]
    return {
        "nodes": len(views),
        "live": sum(view.node.state == Node.State.LIVE for view in views),
        "silent": silent,
        "cards": len(cards),
        "free_cards": sum(view.free_gpus for view in views),
        "slots": cpu_slots.for_devices(processors),
        "simulated": any(view.simulated for view in views),
        "gauges": [
            *([_gauge(_("GPU use"), _mean(card.util for card in cards))] if cards else []),
            _gauge(_("CPU usage"), _mean(view.sample.get("cpu_percent") for view in views)),
            _gauge(_("Memory use"), 100 * used / there if there else None),
        ],
        "net_in_bps": sum(view.sample.get("net_in_bps") or 0 for view in views),
        "net_out_bps": sum(view.sample.get("net_out_bps") or 0 for view in views),
    }


def statistics(user: User) -> list[dict[str, Any]]:
    """Jobs by kind and state, of those this person may see: [{label, total, parts}] for stacked bars."""
    shown_kinds = [kind for kind in _listed() if user.can(kind.view_action)]
    rows = Job.objects.visible_to(user).filter(kind__in=[kind.name for kind in shown_kinds])
    counted = rows.values("kind", "state").annotate(n=Count("pk"))
    numbers = {(row["kind"], row["state"]): row["n"] for row in counted}
    shown = []
    for kind in shown_kinds:
        parts = []
        for word, states in WORDS:
            count = sum(numbers.get((kind.name, state.value), 0) for state in states)
            if count:
                parts.append(
                    {"label": CHIPS[word][2], "hue": "quiet" if word == "stopped" else CHIPS[word][0], "count": count}
                )
        total = sum(part["count"] for part in parts)
        shown.append({"label": kind.plural_label(), "total": total, "parts": parts})
    return shown


def now_of(user: User) -> dict[str, Any]:
    """Return the context of templates/_overview_now.html, the part that is refreshed."""
    return {
        "jobs": my_jobs(user) if user.can(Action.JOBS_VIEW) else None,
        "machines": cluster(user),
        "alarms": [alarm for alarm in alarms.raised_for(user) if alarm.severity != Severity.INFO],
        "statistics": statistics(user),
    }
