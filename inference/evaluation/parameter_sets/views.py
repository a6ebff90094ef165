"""Pages of evaluation parameter sets."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from inference.evaluation import evaluations, saved_parameters
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import Evaluation, EvaluationSet
from inference.evaluation.orders import EVALUATION_SETS
from inference.evaluation.parameter_sets import forms
from inference.evaluation.parameter_sets.forms import EvaluationSetForm
from inference.evaluation.presentation.names import parameter_word
from training.programs import script as command_lines


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def set_list(request: SignedInRequest) -> HttpResponse:
    """Sets the user may see; `?q=`, `?ordering=`. htmx gets the table alone."""
    rows = EvaluationSet.objects.visible_to(request.user).for_list().named_like(request.GET.get("q", "")[:100])
    page = EVALUATION_SETS.page(request, rows)
    template = "inference/_evaluation_set_table.html" if request.htmx else "inference/evaluation_set_list.html"
    return render(request, template, {"page": page})


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def set_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One set, and what can be done with it."""
    row = get_object_or_404(EvaluationSet.objects.visible_to(request.user).for_list(), pk=pk)
    ours = [(parameter_word(name), row.params[name]) for name in evaluations.PARAMETERS if name in row.params]
    context = {
        "row": row,
        "params": scripts.shown_params(row).items() if row.is_scripted else ours,
        "arguments": command_lines.shown(row.arguments),
        "version": saved_parameters.usable_version(row, request.user),
        "may_use": EvaluationSet.objects.usable_by(request.user).filter(pk=pk).exists(),
        "may_change": EvaluationSet.objects.editable_by(request.user).filter(pk=pk).exists(),
    }
    return render(request, "inference/evaluation_set.html", context)


@needs(Action.EVALUATIONS_SUBMIT)
def set_new(request: SignedInRequest) -> HttpResponse:
    """A set of what an evaluation (`?evaluation=`) or another set (`?set=`) says."""
    begun: dict[str, Any]
    if number := ids.number(request.GET.get("set", "")):
        copied = get_object_or_404(EvaluationSet.objects.visible_to(request.user).for_list(), pk=number)
        begun, task = forms.initial_of(copied, request.user), copied.task
    else:
        number = ids.number(request.GET.get("evaluation", ""))
        evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=number or 0)
        begun, task = forms.initial_values(saved_parameters.from_evaluation(evaluation)), evaluation.task
    return _edit(request, None, task, begun)


@needs(Action.EVALUATIONS_SUBMIT)
def set_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(EvaluationSet.objects.editable_by(request.user).for_list(), pk=pk)
    header = {name: getattr(row, name) for name in saved_parameters.ABOUT}
    return _edit(request, row, row.task, forms.initial_of(row, request.user) | header)


def _edit(request: SignedInRequest, row: EvaluationSet | None, task: str, begun: dict[str, Any]) -> HttpResponse:
    form = EvaluationSetForm(request.POST or None, request.FILES or None, user=request.user, initial=begun)
    form.saved_code = begun.get("snapshot")  # of the set, or of what it is made of; whoever may see that may keep it
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
    if form.is_valid():
        with errors_shown_on(form):
            saved = saved_parameters.save(user=request.user, existing=row, task=task, **form.content())
            return redirect("inference:evaluation-set", saved.pk)
    else:
        check_valid_fields(form, saved_parameters.check_name, user=request.user, existing=row)
    task_word = EvaluationSet(task=task).get_task_display()
    context = {"form": form, "row": row, "task_word": task_word, "advanced": [form[name] for name in form.ADVANCED]}
    return render(request, "inference/evaluation_set_edit.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.EVALUATIONS_SUBMIT)
def set_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove a set; evaluations made with it stay."""
    row = get_object_or_404(EvaluationSet.objects.editable_by(request.user), pk=pk)
    row.delete()
    messages.info(request, _("Parameter set %(name)s deleted.") % {"name": row.name})
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("inference:evaluation-sets")})
    return redirect("inference:evaluation-sets")
