"""Pages of studies: the list, one study, its acts. The form of a new one is in `starting`."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import Invalid
from aiplatform.lib.pages import errors_as_messages, is_name_confirmed, needs
from training.programs.pairs import read_pairs
from training.studies import actions, budget, objectives, presentation
from training.studies.models import Study, Trial
from training.studies.orders import ORDERING
from training.studies.sorting import heads, ordered

ACTS = {"pause": actions.pause, "resume": actions.resume, "stop": actions.stop}


@require_safe
@needs(Action.TRAINING_VIEW)
def index(request: SignedInRequest) -> HttpResponse:
    """Studies this person may see; `?q=`, `?state=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    rows = Study.objects.visible_to(request.user).named_like(request.GET.get("q", "")[:100])
    if (state := request.GET.get("state", "")) in Study.State.values:
        rows = rows.in_state(state)
    if request.GET.get("mine") == "1":
        rows = rows.filter(owner=request.user)
    page = ORDERING.page(request, rows.for_list())
    context = {
        "page": page,
        "states": [("", _("all")), *Study.State.choices],
        "refresh": any(row.state == Study.State.RUNNING for row in page.rows),
    }
    return render(request, "studies/_table.html" if request.htmx else "studies/list.html", context)


@require_safe
@needs(Action.TRAINING_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One study; `?ordering=` sorts its trials. htmx gets what changes while it runs."""
    study: Study = get_object_or_404(Study.objects.visible_to(request.user).for_list(), pk=pk)
    trials = list(study.trials.with_jobs().order_by("number"))
    goals = objectives.of_rows(study.objectives)
    best, rows = budget.best_of(study, trials), presentation.trial_rows(study, trials)
    for row in rows:
        row["cells"] = [row["params"].get(one["name"]) for one in study.space]
    ordering = request.GET.get("ordering", "")
    may_change = Study.objects.editable_by(request.user).filter(pk=pk).exists()
    context: dict[str, Any] = {
        "study": study,
        "goals": goals,
        "ranges": presentation.ranges(study),
        "fixed": presentation.fixed(study),
        "preset_title": presentation.preset_title(study),
        "rows": ordered(rows, ordering),
        "heads": heads(study, ordering),
        "best": best,
        "counts": presentation.counts(trials),
        "made": len(trials),
        "most": budget.most(study),
        "hours": budget.hours(study),
        "is_live": study.state == Study.State.RUNNING or any(row.state == Trial.State.RUNNING for row in trials),
        "may_control": may_change and request.user.can(Action.TRAINING_CONTROL),
        "may_change": may_change and request.user.can(Action.TRAINING_SUBMIT),
        "data": {
            "trials": reverse("api-studies-trials", args=[pk]),
            "curves": reverse("api-studies-curves", args=[pk]),
            "importance": reverse("api-studies-importance", args=[pk]),
            "objectives": study.objectives,
            "space": study.space,
        },
    }
    return render(request, "studies/_now.html" if request.htmx else "studies/detail.html", context)


@require_POST
@needs(Action.TRAINING_CONTROL)
def act(request: SignedInRequest, pk: int, verb: str) -> HttpResponse:
    """Pause, resume or stop a study."""
    study = _changeable(request, pk)
    with errors_as_messages(request):
        ACTS[verb](study, by=request.user)
    return redirect("studies:detail", pk)


@require_POST
@needs(Action.TRAINING_SUBMIT)
def enqueue(request: SignedInRequest, pk: int) -> HttpResponse:
    """Try parameters next: one `name = value` a line."""
    study = _changeable(request, pk)
    with errors_as_messages(request):
        actions.put_next(study, _pairs(request))
        messages.info(request, _("They are tried next."))
    return redirect("studies:detail", pk)


@require_POST
@needs(Action.TRAINING_SUBMIT)
def best(request: SignedInRequest, pk: int) -> HttpResponse:
    """Train with the best parameters once more; `params` are lines `name = value` in place of the study's own."""
    study = _changeable(request, pk)
    with errors_as_messages(request):
        training = actions.train_best(study, by=request.user, params=_pairs(request))
        return redirect("training:job-detail", training.pk)
    return redirect("studies:detail", pk)


@require_POST
@needs(Action.TRAINING_SUBMIT)
def limits(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change how many trials there may be, in all and at once."""
    study = _changeable(request, pk)
    with errors_as_messages(request):
        actions.change_counts(study, request.POST.get("max_trials", ""), request.POST.get("at_once", ""))
    return redirect("studies:detail", pk)


@require_POST
@needs(Action.TRAINING_CONTROL)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a study, once its name was typed."""
    study = _changeable(request, pk)
    if not is_name_confirmed(request, study.name):
        return redirect("studies:detail", pk)
    with errors_as_messages(request):
        actions.delete(study)
        messages.info(request, _("Study %(name)s is deleted.") % {"name": study.name})
        return redirect("studies:list")
    return redirect("studies:detail", pk)


def _pairs(request: SignedInRequest) -> dict[str, Any]:
    """The lines of the field `params`.

    Raises:
        Invalid: a line that is no pair.
    """
    try:
        return read_pairs(request.POST.get("params", "")[:20_000])
    except ValidationError as exc:
        raise Invalid(" ".join(exc.messages), field="params") from None


def _changeable(request: SignedInRequest, pk: int) -> Study:
    rows = Study.objects.visible_to(request.user).editable_by(request.user)
    found: Study = get_object_or_404(rows, pk=pk)
    return found
