"""Pages of evaluation parameter sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table
from inference.evaluation import evaluations, saved_parameters
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.filters import EvaluationSetFilters
from inference.evaluation.models import Evaluation, EvaluationSet
from inference.evaluation.parameter_sets import forms
from inference.evaluation.parameter_sets.forms import EvaluationSetForm
from inference.evaluation.presentation.names import parameter_word
from training.programs import script as command_lines


class EvaluationSetPages(ObjectPages[EvaluationSet]):
    """The pages of evaluation parameter sets."""

    model, filters, form_class = EvaluationSet, EvaluationSetFilters, EvaluationSetForm
    namespace, basename, path = "inference", "evaluation-set", "evaluations/sets/"
    url_names = {"list": "evaluation-sets"}
    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    table = Table(
        MainColumn(_("Name"), sort="name", below="row.description"),
        Column(_("Task"), "row.get_task_display", sort="task"),
        Column(_("Dataset"), template="inference/_evaluation_set_data.html"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Created"), "row.created_at|ago", sort="created", kind="time"),
        Column(_("Actions"), template="inference/_evaluation_set_buttons.html", kind="actions"),
        bulk=(
            bulk.delete(
                "/api/v1/evaluation-sets/0/", _("Evaluations created with it are kept."),
                needs=Action.EVALUATIONS_SUBMIT,
            ),
        ),
    )  # fmt: skip
    region, art, title = "sets", "sliders", _("Evaluation parameters")
    lead = _("Saved parameters of an evaluation, for reuse.")
    filter_label, no_match_text = _("Filter parameter sets"), _("No parameter set matches.")
    empty_text = _("No parameter sets yet. Open an evaluation and save its parameters.")
    new_title, empty_action = _("New parameter set"), _("View evaluations")
    confirms_name, deleted_text = False, _("Parameter set %(name)s deleted.")
    list_template, form_template = "inference/evaluation_set_list.html", "inference/evaluation_set_edit.html"
    detail_template = "inference/evaluation_set.html"

    @property
    def new_url(self) -> str:
        """Where evaluations are, whose pages have the link to the form of a new set."""
        return reverse("inference:evaluation-list")

    def details(self, request: SignedInRequest, row: EvaluationSet, is_own: bool) -> dict[str, Any]:
        """What the set contains, and what can be done with it."""
        ours = [(parameter_word(name), row.params[name]) for name in evaluations.PARAMETERS if name in row.params]
        return {
            "params": scripts.shown_params(row).items() if row.is_scripted else ours,
            "arguments": command_lines.shown(row.arguments),
            "version": saved_parameters.usable_version(row, request.user),
            "may_use": self.rows(request, "usable_by").filter(pk=row.pk).exists(),
        }

    def form(self, request: SignedInRequest, row: EvaluationSet | None = None) -> EvaluationSetForm:
        """The form of `row`, or of a new set of what an evaluation (`?evaluation=`) or another set (`?set=`) says."""
        if row is not None:
            initial, task = forms.initial_of(row, request.user), row.task
            initial |= {name: getattr(row, name) for name in saved_parameters.ABOUT}
        elif number := ids.number(request.GET.get("set", "")):
            copied = self.row(request, number)
            initial, task = forms.initial_of(copied, request.user), copied.task
        else:
            number = ids.number(request.GET.get("evaluation", ""))
            evaluation = get_object_or_404(Evaluation.objects.visible_to(request.user).for_list(), pk=number or 0)
            initial, task = forms.initial_values(saved_parameters.from_evaluation(evaluation)), evaluation.task
        form = EvaluationSetForm(request.POST or None, request.FILES or None, user=request.user, initial=initial)
        form.task = task
        form.saved_code = initial.get(
            "snapshot"
        )  # of the set, or of what it is made of: users who see that may keep it
        if form.is_bound:
            with errors_shown_on(form):
                form.take_code()
        return form

    def form_context(self, request: SignedInRequest, form: Any, row: EvaluationSet | None) -> dict[str, Any]:
        return {"task_word": EvaluationSet(task=form.task).get_task_display()}

    def service_check(self, request: SignedInRequest, row: EvaluationSet | None) -> Callable[..., object]:
        return partial(saved_parameters.check_name, user=request.user, existing=row)

    def create(self, request: SignedInRequest, form: EvaluationSetForm) -> EvaluationSet:
        return saved_parameters.save(user=request.user, task=form.task, **form.content())

    def change(self, request: SignedInRequest, form: EvaluationSetForm, row: EvaluationSet) -> None:
        saved_parameters.save(user=request.user, existing=row, task=form.task, **form.content())

    def remove(self, request: SignedInRequest, row: EvaluationSet) -> HttpResponse | None:
        """Remove a set; evaluations made with it stay."""
        row.delete()
        return HttpResponse(status=204, headers={"HX-Redirect": reverse(self.names.list)}) if request.htmx else None
