"""The page that starts a training, and its live answer to "does it fit?"."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib import ids
from aiplatform.lib.pages import look_further, needs, refusals_shown_on
from datasets.models import DatasetVersion
from training.forms import OWN, SubmitForm
from training.models import ParameterSet, TrainingJob
from training.pairs import written_pairs
from training.presets.catalog import PRESETS
from training.services import additional, drafts, jobs
from training.task_kinds import preset_for
from workers.jobs.forms.resource_request import initial_of
from workers.jobs.resource_request import Resources
from workers.scheduling import preview


@needs(Action.TRAINING_SUBMIT)
def job_submit(request: SignedInRequest) -> HttpResponse:
    """GET may begin from `?preset=`, `?set=`, `?clone=` or `?version=`."""
    initial, given, pattern = _beginning(request)
    form = SubmitForm(request.POST or None, request.FILES or None, user=request.user, initial=initial, given=given)
    if form.is_bound:
        with refusals_shown_on(form):
            form.take_code()
        if form.is_valid():
            with refusals_shown_on(form):
                training = jobs.submit(user=request.user, request=drafts.TrainingRequest(**form.request_fields()))
                return redirect("training:job-detail", training.pk)
        else:
            look_further(form, drafts.check_parts)
    context = {
        "form": form,
        "groups": form.groups(),
        "pattern": pattern,
        "switches": additional.known(),
        "chosen": form["preset"].value(),
        "own": OWN,
        "has_data": form.fields["version"].queryset.exists(),  # type: ignore[attr-defined]  # a choice among rows, declared above
    }
    return render(request, "training/job_submit.html", context, status=422 if form.errors else 200)


@needs(Action.TRAINING_SUBMIT)
@require_POST
def job_fit(request: SignedInRequest) -> HttpResponse:
    """The panel beside the form: fits now, waits, or never fits. Half a form is fine."""
    form = SubmitForm(request.POST, user=request.user)
    form.is_valid()
    verdict = preview.look(request.user, form.resources(), kind=jobs.KIND)
    return render(request, "workers/_fit.html", {"verdict": verdict})


def _beginning(request: SignedInRequest) -> tuple[dict[str, Any], dict[str, dict[str, Any]], Any]:
    """Return initial values of the form, parameters by preset, and the parameter set or training they come from."""
    cards = drafts.card_ids()
    initial: dict[str, Any] = {
        "preset": next(iter(PRESETS)),
        "gpus_per_node": 1 if cards else 0,
        "cpus": drafts.default_cpus(),
    }
    query = request.GET
    if version := ids.number(query.get("version", "")):
        initial["version"] = version
        found = DatasetVersion.objects.usable_by(request.user).filter(pk=version).first()
        initial["preset"] = (found and preset_for(found)) or initial["preset"]
    if query.get("preset") in PRESETS or query.get("preset") == OWN:
        initial["preset"] = query["preset"]
    if number := ids.number(query.get("set", "")):
        chosen = get_object_or_404(ParameterSet.objects.visible_to(request.user), pk=number)
        return initial | {"preset": chosen.preset}, {chosen.preset: chosen.params}, chosen
    if number := ids.number(query.get("clone", "")):
        parent = get_object_or_404(TrainingJob.objects.visible_to(request.user).for_list(), pk=number)
        return initial | _of_clone(parent), {parent.preset: parent.params}, parent
    return initial, {}, None


def _of_clone(parent: TrainingJob) -> dict[str, Any]:
    request = jobs.as_request(parent)
    plain = ("description", "start_file", "arguments", "writes_checkpoints", "extra", "output_path", "processes")
    return (
        {name: request[name] for name in plain}
        | initial_of(cast(Resources, request))
        | {
            "name": next_name(request["name"]),
            "preset": request["preset"] or OWN,
            "pairs": "" if request["preset"] else written_pairs(request["params"]),
            "snapshot": request["code"],
            "version": request["version"],
            "eval_version": request["eval_version"],
        }
    )


def next_name(name: str) -> str:
    """`cells` → `cells_2`, `cells_2` → `cells_3`."""
    stem, _underscore, number = name.rpartition("_")
    if stem and number.isascii() and number.isdigit() and len(number) < 6:
        return f"{stem}_{int(number) + 1}"
    return f"{name[:95]}_2"
