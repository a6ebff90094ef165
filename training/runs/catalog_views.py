"""Pages of presets and saved parameter sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import needs
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, MainColumn, Table
from training.catalog.task_kinds import TASKS
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.runs import measured, parameter_sets, parameters
from training.runs.filters import ParameterSetFilters
from training.runs.forms import ParameterSetForm
from training.runs.models import ParameterSet, TrainingJob
from training.runs.param_fields import typed


@needs(Action.TRAINING_VIEW)
@require_safe
def presets(request: SignedInRequest) -> HttpResponse:
    query = request.GET.get("q", "")[:100]
    reached = measured.reached(request.user)
    rows = [
        {"preset": preset, "task": TASKS.get(preset.task), "reached": reached.get(preset.name, [])}
        for preset in parameters.presets_like(query)
    ]
    template = "training/_preset_rows.html" if request.htmx else "training/preset_list.html"
    return render(request, template, {"rows": rows})


class ParameterSetPages(ObjectPages[ParameterSet]):
    """Pages of parameter sets; the list begins with the presets and their own parameters."""

    model, filters = ParameterSet, ParameterSetFilters
    namespace, basename, path = "training", "params", "params/"
    url_names = {"list": "params", "detail": "params-detail"}
    view_permission, change_permission = Action.TRAINING_VIEW, Action.TRAINING_SUBMIT
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name", below="row.description"),
        Column(_("Preset"), "row.preset", sort="preset", css="mono"),
        Column(_("Changed"), template="training/_params_differences.html", css="small"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Version"), "row.number", kind="num"),
        Column(_("Training jobs"), "row.uses|count", kind="num"),
        Column(_("Changed"), "row.updated_at|ago", sort="changed", kind="time"),
        Column(_("Actions"), template="training/_params_use.html", kind="actions"),
        anchor="set",
    )
    region, title = "sets", _("Parameter sets")
    lead = _("Named parameters of a preset to start training jobs with.")
    filter_label, no_match_text = _("Filter parameter sets"), _("No parameter set matches.")
    empty_text = _("No parameter sets yet. Save one to reuse the same settings.")
    new_title = _("New parameter set")
    confirms_name, deleted_text = False, _("Parameter set %(name)s deleted.")
    list_template, table_template = "training/params_list.html", "training/_params_table.html"
    form_template, detail_template = "training/params_edit.html", "training/params_detail.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.differences = parameter_sets.differences(PRESETS.get(row.preset), row.params)
        return {"presets": _presets_named_like(request.GET.get("q", ""))}

    def details(self, request: SignedInRequest, row: ParameterSet, is_own: bool) -> dict[str, Any]:
        """The newest version, or the one of `?version=`, and the other versions."""
        versions = list(row.versions.select_related("made_by").annotate(used=Count("uses")).order_by("-number"))
        number = ids.number(request.GET.get("version", ""))
        version = next((candidate for candidate in versions if candidate.number == number), versions[0])
        preset = PRESETS.get(row.preset)
        return {
            "preset": preset,
            "versions": versions,
            "version": version,
            "differences": parameter_sets.differences(preset, version.params),
            "all_values": parameter_sets.all_values(preset, version.params),
            "may_use": self.rows(request, "usable_by").filter(pk=row.pk).exists(),
        }

    def form(self, request: SignedInRequest, row: ParameterSet | None = None) -> ParameterSetForm:
        """A new set begins from `?preset=`, `?set=` or `?training=`, or from the form that starts a training."""
        if row is not None and row.preset not in PRESETS:
            raise Http404
        name, begun = (row.preset, row.params) if row else _beginning(request)
        preset = PRESETS.get(request.POST.get("preset") or name) or next(iter(PRESETS.values()))
        initial = {name: getattr(row, name) for name in ("name", "description", "visibility")} if row else {}
        sent = request.POST if request.method == "POST" and request.POST.get("begin") != "form" else None
        return ParameterSetForm(sent, preset=preset, params=begun, initial=initial)

    def form_context(self, request: SignedInRequest, form: Any, row: ParameterSet | None) -> dict[str, Any]:
        return {"group": form.groups()[0], "preset": form.preset, "presets": PRESETS}

    def service_check(self, request: SignedInRequest, row: ParameterSet | None) -> Callable[..., object]:
        return partial(parameter_sets.check_name, user=request.user, existing=row)

    def create(self, request: SignedInRequest, form: ParameterSetForm) -> ParameterSet:
        return parameter_sets.save(user=request.user, **form.values())

    def change(self, request: SignedInRequest, form: ParameterSetForm, row: ParameterSet) -> None:
        parameter_sets.save(user=request.user, existing=row, **form.values())

    def remove(self, request: SignedInRequest, row: ParameterSet) -> HttpResponse | None:
        row.delete()
        return HttpResponse(status=204, headers={"HX-Redirect": reverse(self.names.list)}) if request.htmx else None


def _presets_named_like(query: str) -> list[Preset]:
    """Return the presets, whose own parameters are listed before the saved sets, that contain each of the words."""
    wanted = query[:100].lower().split()
    named = [(preset, f"{preset.name} {gettext(preset.title)}".lower()) for preset in PRESETS.values()]
    return [preset for preset, text in named if all(word in text for word in wanted)]


def _beginning(request: SignedInRequest) -> tuple[str, dict[str, Any]]:
    """The preset of a new set, and the parameters that its form begins with."""
    query = request.GET
    if number := ids.number(query.get("set", "")):
        copied = get_object_or_404(ParameterSet.objects.visible_to(request.user), pk=number)
        return copied.preset, copied.params
    if number := ids.number(query.get("training", "")):
        training = get_object_or_404(TrainingJob.objects.visible_to(request.user), pk=number)
        return training.preset, training.params
    if request.POST.get("begin") == "form":
        preset = PRESETS.get(request.POST.get("preset", ""))
        return (preset.name, typed(preset, request.POST)) if preset else ("", {})
    return query.get("preset", ""), {}
