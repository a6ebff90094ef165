"""Pages of presets and saved parameter sets."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib import search
from aiplatform.lib.pages import look_further, needs, refusals_shown_on
from training.forms import ParameterSetForm
from training.models import ParameterSet
from training.orders import PARAMETER_SETS
from training.presets.catalog import PRESETS
from training.services import measured, parameters
from training.task_kinds import TASKS


@needs(Action.TRAINING_VIEW)
@require_safe
def presets(request: SignedInRequest) -> HttpResponse:
    words = request.GET.get("q", "")[:100]
    reached = measured.reached(request.user)
    rows = [
        {"preset": preset, "task": TASKS.get(preset.task), "reached": reached.get(preset.name, [])}
        for preset in parameters.presets_like(words)
    ]
    template = "training/_preset_rows.html" if request.htmx else "training/preset_list.html"
    return render(request, template, {"rows": rows})


@needs(Action.TRAINING_VIEW)
@require_safe
def params(request: SignedInRequest) -> HttpResponse:
    words = request.GET.get("q", "")[:100]
    rows = search.having(ParameterSet.objects.visible_to(request.user).select_related("owner"), words, "name")
    template = "training/_params_table.html" if request.htmx else "training/params_list.html"
    return render(request, template, {"page": PARAMETER_SETS.page(request, rows)})


@needs(Action.TRAINING_SUBMIT)
def params_new(request: SignedInRequest) -> HttpResponse:
    """A new set of `?preset=`."""
    return _edit(request, None, request.GET.get("preset", ""))


@needs(Action.TRAINING_SUBMIT)
def params_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    existing = get_object_or_404(ParameterSet.objects.editable_by(request.user), pk=pk)
    return _edit(request, existing, existing.preset)


def _edit(request: SignedInRequest, existing: ParameterSet | None, preset_name: str) -> HttpResponse:
    preset = PRESETS.get(preset_name) or next(iter(PRESETS.values()))
    initial = {"name": existing.name, "description": existing.description} if existing else {}
    form = ParameterSetForm(request.POST or None, preset=preset, existing=existing, initial=initial)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            parameters.save(
                user=request.user,
                name=form.cleaned_data["name"],
                description=form.cleaned_data["description"],
                preset=preset.name,
                params=form.params_of(preset),
                existing=existing,
            )
            return redirect("training:params")
    else:
        look_further(form, parameters.check_name, user=request.user, existing=existing)
    context = {"form": form, "group": form.groups()[0], "preset": preset, "existing": existing, "presets": PRESETS}
    return render(request, "training/params_edit.html", context, status=422 if form.errors else 200)


@needs(Action.TRAINING_SUBMIT)
@require_POST
def params_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(ParameterSet.objects.editable_by(request.user), pk=pk)
    name = row.name
    row.delete()
    messages.info(request, _("Parameter set %(name)s is removed.") % {"name": name})
    if request.htmx:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return redirect("training:params")
