"""What the start page shows, gathered from the rooms: the way of work, my jobs, the machines, states in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.permissions import Action
from aiplatform.navigation import exists
from aiplatform.templatetags.ui import CHIPS
from annotation.models import AnnotationProject
from datasets.models import Dataset
from inference.models import Evaluation, Model, Service
from training.models import TrainingJob
from workers import kinds
from workers.machines import nodes
from workers.models import Job, Node, Severity
from workers.monitoring import alarms
from workers.states import FINAL, JobState

MY_JOBS = 8  # rows before "all of them"
BUSY = 90  # percent of processor or memory from which a figure is shown as a warning


@dataclass(frozen=True)
class Step:
    """One stop on the way from images to a model in use."""

    label: Any
    hint: Any
    icon: str
    path: str
    needs: Action
    rows: Any  # model whose visible rows are counted


STEPS = (
    Step(_("Datasets"), _("Upload images"), "datasets", "/datasets/", Action.DATASETS_VIEW, Dataset),
    Step(
        _("Annotation"),
        _("Draw boxes and polygons"),
        "annotation",
        "/annotation/",
        Action.ANNOTATION_VIEW,
        AnnotationProject,
    ),
    Step(_("Training"), _("Train on annotated data"), "training", "/training/", Action.TRAINING_VIEW, TrainingJob),
    Step(_("Models"), _("Keep what was learned"), "models", "/models/", Action.MODELS_VIEW, Model),
    Step(
        _("Evaluations"), _("Measure on other data"), "evaluation", "/evaluations/", Action.EVALUATIONS_VIEW, Evaluation
    ),
    Step(_("Inference"), _("Put a model to work"), "inference", "/services/", Action.SERVICES_VIEW, Service),
)

#: kinds of jobs whose states stand on the page, with what people call them
KINDS = (
    ("training", _("Training"), Action.TRAINING_VIEW),
    ("evaluation", _("Evaluation"), Action.EVALUATIONS_VIEW),
    ("service", _("Inference"), Action.SERVICES_VIEW),
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


def steps(user: User) -> list[dict[str, Any]]:
    """The way of work as links, with how many things of each kind this person may see."""
    return [
        {
            "label": step.label,
            "hint": step.hint,
            "icon": step.icon,
            "url": step.path,
            "count": step.rows.objects.visible_to(user).count(),
        }
        for step in STEPS
        if user.can(step.needs) and exists(step.path)
    ]


def my_jobs(user: User) -> dict[str, Any]:
    """The person's waiting and running jobs, newest first: {rows: [{job, url, kind}], more}."""
    live = Job.objects.filter(owner=user).exclude(state__in=FINAL).select_related("cluster", "training").order_by("-pk")
    found = list(live[: MY_JOBS + 1])
    rows = [{"job": job, "url": kinds.url_of(job), "kind": kinds.label_of(job.kind)} for job in found[:MY_JOBS]]
    return {"rows": rows, "more": len(found) > MY_JOBS}


def _mean(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if known else None


def _gauge(label: Any, value: float | None, words: str = "") -> dict[str, Any]:
    """A figure in percent for the page; amber from 90 %."""
    hue = "" if value is None else "is-wait" if value >= BUSY else "is-run"
    return {"label": label, "value": value, "hue": hue, "words": words}


def cluster(user: User) -> dict[str, Any] | None:
    """The machines at a glance, or None for those who may not see them."""
    if not user.can(Action.CLUSTER_VIEW):
        return None
    views = nodes.view_all(user)
    cards = [card for view in views for card in view.gpus]
    used = sum(view.sample.get("memory_used_mib") or 0 for view in views)
    there = sum(view.sample.get("memory_total_mib") or 0 for view in views)
    silent = [view.node for view in views if view.node.state in {Node.State.UNREACHABLE, Node.State.LOST}]
    return {
        "nodes": len(views),
        "live": sum(view.node.state == Node.State.LIVE for view in views),
        "silent": silent,
        "cards": len(cards),
        "free_cards": sum(view.free_gpus for view in views),
        "simulated": any(view.simulated for view in views),
        "gauges": [
            *([_gauge(_("GPU use"), _mean(card.util for card in cards))] if cards else []),
            _gauge(_("Processor use"), _mean(view.sample.get("cpu_percent") for view in views)),
            _gauge(_("Memory use"), 100 * used / there if there else None),
        ],
        "net_in_bps": sum(view.sample.get("net_in_bps") or 0 for view in views),
        "net_out_bps": sum(view.sample.get("net_out_bps") or 0 for view in views),
    }


def statistics(user: User) -> list[dict[str, Any]]:
    """Jobs by kind and state, of those this person may see: [{label, total, parts}] for stacked bars."""
    kinds = [kind for kind, _label, action in KINDS if user.can(action)]
    counted = Job.objects.visible_to(user).filter(kind__in=kinds).values("kind", "state").annotate(n=Count("pk"))
    numbers = {(row["kind"], row["state"]): row["n"] for row in counted}
    shown = []
    for kind, label, action in KINDS:
        if not user.can(action):
            continue
        parts = []
        for word, states in WORDS:
            count = sum(numbers.get((kind, state.value), 0) for state in states)
            if count:
                parts.append(
                    {"label": CHIPS[word][2], "hue": "quiet" if word == "stopped" else CHIPS[word][0], "count": count}
                )
        shown.append({"label": label, "total": sum(part["count"] for part in parts), "parts": parts})
    return shown


def gather(user: User) -> dict[str, Any]:
    """Context of templates/overview.html."""
    return {
        "steps": steps(user),
        "jobs": my_jobs(user) if user.can(Action.JOBS_VIEW) else None,
        "machines": cluster(user),
        "alarms": [alarm for alarm in alarms.firing(user) if alarm.severity != Severity.INFO],
        "statistics": statistics(user),
    }
