"""Parts of an evaluation's page: scores and thresholds, images to mend, its report."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_as_messages, needs
from inference.evaluation import calibration, error_datasets
from inference.evaluation.models import Evaluation
from inference.evaluation.presentation import report
from inference.evaluation.presentation.results import calibration_context
from inference.kit.task_kinds import TASKS


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def evaluation_calibration(request: SignedInRequest, pk: int) -> HttpResponse:
    """Reliability of the scores, and thresholds by cost: `?wrong=` and `?missed=` are what each costs."""
    evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=pk)
    values = {name: request.GET.get(name, "1")[:20] for name in ("wrong", "missed")}
    context: dict[str, Any] = {"evaluation": evaluation, "given": values}
    try:
        context |= calibration_context(
            evaluation, **{name: calibration.parse_number(text) for name, text in values.items()}
        )
    except DomainError as refusal:
        context["refusals"] = refusal.every
        return render(request, "inference/_calibration.html", context, status=refusal.status)
    task = TASKS.get(evaluation.task)
    context["chosen_by_callers"] = task is not None and task.pages.threshold
    context["may_choose"] = (
        context["chosen_by_callers"] and request.user.can(Action.EVALUATIONS_SUBMIT)
        and Evaluation.objects.editable_by(request.user).filter(pk=pk).exists()
    )  # fmt: skip
    return render(request, "inference/_calibration.html", context)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def evaluation_threshold(request: SignedInRequest, pk: int) -> HttpResponse:
    """Keep a threshold as the best score; "" goes back to the one with the best F1."""
    evaluation = get_object_or_404(Evaluation.objects.editable_by(request.user).select_related("job"), pk=pk)
    threshold = request.POST.get("threshold", "")
    with errors_as_messages(request):
        calibration.choose(evaluation, calibration.parse_number(threshold) if threshold else None)
        messages.info(request, _("Default threshold for endpoints with this version, unless a request sets one."))
    return redirect("inference:evaluation-detail", pk)


@require_POST
@needs(Action.EVALUATIONS_VIEW)
def evaluation_annotate(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make a dataset of images with a mistake."""
    evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=pk)
    values = request.POST
    with errors_as_messages(request):
        made = error_datasets.annotate(
            evaluation, by=request.user, name=values.get("name", "").strip()[:100],
            mistake=values.get("mistake", ""), cell=values.get("cell", ""),
        )  # fmt: skip
        return redirect("datasets:detail", made.pk)
    return redirect("inference:evaluation-detail", pk)


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def evaluation_report(request: SignedInRequest, pk: int) -> HttpResponse:
    """The report of an evaluation, to save."""
    evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=pk)
    return report.answer(evaluation, request.user)
