"""Pages of presets and saved parameter sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from training.catalog.task_kinds import TASKS
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.runs import measured, parameter_sets, parameters
from training.runs.forms import ParameterSetForm
from training.runs.models import ParameterSet, TrainingJob
from training.runs.orders import PARAMETER_SETS
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


@needs(Action.TRAINING_VIEW)
@require_safe
def params(request: SignedInRequest) -> HttpResponse:
    """Parameter sets this person may see; `?q=`, `?ordering=`. htmx gets the table alone."""
    rows = ParameterSet.objects.visible_to(request.user).named_like(request.GET.get("q", "")[:100])
    page = PARAMETER_SETS.page(request, rows.for_list())
    for row in page.rows:
        row.differences = parameter_sets.differences(PRESETS.get(row.preset), row.params)
    template = "training/_params_table.html" if request.htmx else "training/params_list.html"
    return render(request, template, {"page": page, "presets": _presets_named_like(request.GET.get("q", ""))})


def _presets_named_like(query: str) -> list[Preset]:
    """Return the presets, whose own parameters are listed before the saved sets, that contain each of the words."""
    wanted = query[:100].lower().split()
    named = [(preset, f"{preset.name} {_(preset.title)}".lower()) for preset in PRESETS.values()]
    return [preset for preset, text in named if all(word in text for word in wanted)]


@needs(Action.TRAINING_VIEW)
@require_safe
def params_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show a set with its newest version, or the one of `?version=`, and its other versions."""
    rows = ParameterSet.objects.visible_to(request.user)
    row: ParameterSet = get_object_or_404(rows.for_list(), pk=pk)
    versions = list(row.versions.select_related("made_by").annotate(used=Count("uses")).order_by("-number"))
    number = ids.number(request.GET.get("version", ""))
    version = next((candidate for candidate in versions if candidate.number == number), versions[0])
    preset = PRESETS.get(row.preset)
    context = {
        "row": row,
        "preset": preset,
        "versions": versions,
        "version": version,
        "differences": parameter_sets.differences(preset, version.params),
        "all_values": parameter_sets.all_values(preset, version.params),
        "may_use": preset and ParameterSet.objects.usable_by(request.user).filter(pk=pk).exists(),
        "may_change": preset and ParameterSet.objects.editable_by(request.user).filter(pk=pk).exists(),
    }
    return render(request, "training/params_detail.html", context)


@needs(Action.TRAINING_SUBMIT)
def params_new(request: SignedInRequest) -> HttpResponse:
    """A new set: of `?preset=`, of another set (`?set=`) or training (`?training=`), or of the form that starts one."""
    name, begun = _beginning(request)
    return _edit(request, None, name, begun)


@needs(Action.TRAINING_SUBMIT)
def params_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    existing = get_object_or_404(ParameterSet.objects.editable_by(request.user), pk=pk, preset__in=PRESETS)
    return _edit(request, existing, existing.preset, existing.params)


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


def _edit(
    request: SignedInRequest, existing: ParameterSet | None, preset_name: str, begun: Mapping[str, Any]
) -> HttpResponse:
    preset = PRESETS.get(request.POST.get("preset") or preset_name) or next(iter(PRESETS.values()))
    names = ("name", "description", "visibility")
    initial = {name: getattr(existing, name) for name in names} if existing else {}
    sent = request.POST if request.method == "POST" and request.POST.get("begin") != "form" else None
    form = ParameterSetForm(sent, preset=preset, params=begun, initial=initial)
    if form.is_bound and form.is_valid():
        with errors_shown_on(form):
            saved = parameter_sets.save(
                user=request.user,
                **{name: form.cleaned_data[name] for name in names},
                preset=preset.name,
                params=form.params_of(preset),
                existing=existing,
            )
            return redirect("training:params-detail", saved.pk)
    else:
        check_valid_fields(form, parameter_sets.check_name, user=request.user, existing=existing)
    context = {"form": form, "group": form.groups()[0], "preset": preset, "existing": existing, "presets": PRESETS}
    return render(request, "training/params_edit.html", context, status=422 if form.errors else 200)


@needs(Action.TRAINING_SUBMIT)
@require_POST
def params_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(ParameterSet.objects.editable_by(request.user), pk=pk)
    row.delete()
    messages.info(request, _("Parameter set %(name)s deleted.") % {"name": row.name})
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("training:params")})
    return redirect("training:params")
