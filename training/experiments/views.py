"""Pages of experiments: the table of runs, one run, runs beside each other."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.timezone import now
from django.views.decorators.http import require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs
from training.experiments import code, comparison, table
from training.experiments.models import Run, View, Visibility
from workers.core.models import Job
from workers.core.states import LIVE, JobState

#: How a script on another machine reports here; {address} is where tracking answers.
_ELSEWHERE = """\
pip install mlflow-skinny
export MLFLOW_TRACKING_URI={address}
export MLFLOW_TRACKING_TOKEN=…

import mlflow

with mlflow.start_run(run_name="on my laptop"):
    mlflow.log_params({{"lr": 0.1}})
    for step in range(100):
        mlflow.log_metric("train/loss", 1 / (step + 1), step=step)
"""


@needs(Action.TRAINING_VIEW)
@require_safe
def index(request: SignedInRequest) -> HttpResponse:
    """The table of runs, as a saved view where `?view=` names one."""
    views = View.objects.visible_to(request.user).select_related("owner")
    number = ids.number(request.GET.get("view", ""))
    view = get_object_or_404(views, pk=number) if number is not None else None
    editable = view is not None and (view.owner_id == request.user.pk or request.user.sees_everything)
    config: dict[str, Any] = {
        "url": reverse("run-table"),
        "bulk": reverse("run-bulk"),
        "views": reverse("run-view-list"),
        "importance": reverse("run-importance-list"),
        "run": reverse("experiments:table") + "runs/",
        "compare": reverse("training:compare"),
        "curves": reverse("training-comparison-curves"),
        "may_submit": request.user.can(Action.TRAINING_SUBMIT),
        "facts": [{"name": name, "label": str(label)} for name, (label, _kind) in table.FACTS.items()],
        "live": sorted(str(state) for state in LIVE),
        "view": view.query if view else None,
        "name": view.name if view else "",
        "number": view.pk if view else None,
        "editable": editable,
    }
    context = {
        "config": config,
        "elsewhere": _ELSEWHERE.format(address=request.build_absolute_uri("/api/mlflow")),
        "views": views,
        "view": view,
        "view_editable": editable,
        "states": JobState.values,
        "visibilities": Visibility.choices,
    }
    return render(request, "experiments/table.html", context)


@needs(Action.TRAINING_VIEW)
@require_safe
def run(request: SignedInRequest, pk: int) -> HttpResponse:
    """One run: what it was given, what it reached, what people say of it, and its parts."""
    shown: Run = get_object_or_404(Run.objects.visible_to(request.user).for_comparison(), pk=pk)
    parts = list(shown.children.for_comparison().order_by("pk")[:200])
    (figures,) = comparison.figures([shown])
    keys = comparison.keys([figures])
    own_job = shown.job_id is not None and Job.objects.visible_to(request.user).filter(pk=shown.job_id).exists()
    context = {
        "run": shown,
        "own_job": own_job,
        "editable": shown.owner_id == request.user.pk or request.user.sees_everything,
        "starred": shown.stars.filter(user=request.user).exists(),
        "tags": shown.tags.order_by("key"),
        "params": comparison.grouped_params(shown),
        "headline": comparison.headline(shown, figures),
        "duration": shown.job.span if shown.job is not None else (shown.ended_at or now()) - shown.created_at,
        "keys": keys,
        "figures": [(key, figures[key]) for key in keys if not key.startswith("system/")],
        "parts": parts,
        "visibilities": Visibility.choices,
    }
    return render(request, "experiments/run.html", context)


@needs(Action.TRAINING_VIEW)
@require_safe
def run_by_uid(request: SignedInRequest, uid: str) -> HttpResponse:
    """Lead to the run with an id of MLflow."""
    return redirect("experiments:run", get_object_or_404(Run.objects.visible_to(request.user), uid=uid).pk)


@login_not_required
@require_safe
def mlflow_link(request: HttpRequest) -> HttpResponse:
    """Follow a link that MLflow's clients print: its fragment names the run, and only the browser knows it."""
    return render(request, "experiments/mlflow_link.html")


@needs(Action.TRAINING_VIEW)
@require_safe
def compare(request: SignedInRequest) -> HttpResponse:
    """Compare the runs of `?run=` and the trainings of `?training=`, given again for each."""
    numbers, trainings = (
        [number for text in request.GET.getlist(name) if (number := ids.number(text)) is not None]
        for name in ("run", "training")
    )
    try:
        runs = comparison.chosen(request.user, numbers, trainings=trainings)
    except DomainError as refused:
        status = refused.status if numbers or trainings else 200  # nothing is chosen yet
        return render(request, "training/compare.html", {"refused": refused.message}, status=status)
    figures = comparison.figures(runs)
    keys = comparison.keys(figures)
    rows = comparison.rows(runs)
    mine = set(Job.objects.visible_to(request.user).filter(run__in=runs).values_list("run", flat=True))
    coded = [run for run in runs if run.pk in mine and code.has_code(run)]
    context = {
        "runs": runs,
        "keys": keys,
        "rows": rows,
        "params": {row.name: [None if value is None else str(value)[:60] for value in row.values] for row in rows},
        "code": [(run, coded[0], files) for run, files in code.compare(coded)],
        "differing": [row.name for row in rows if row.differs],
        "figures": [
            (key, comparison.with_best(key, [own.get(key) for own in figures]))
            for key in keys
            if not key.startswith("system/")
        ],
    }
    return render(request, "training/compare.html", context)
