"""The page that starts a training, and its live answer to "does it fit?"."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform import env
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, needs
from datasets.models import DatasetVersion
from training.catalog.task_kinds import preset_for
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.programs import request_secrets, starting_points
from training.programs.pages import render_fit
from training.programs.requests import default_cpus
from training.runs import (
    drafts,
    extra_options,
    jobs,
    parameter_sets,
    parameters,
    planned,
    preset_cards,
    pretrained_weights,
)
from training.runs.forms import OWN, SubmitForm
from training.runs.models import ParameterSet, TrainingJob
from training.runs.param_fields import MODELS_LIST
from training.runs.request_schema import SCHEMA
from workers.core.device_kinds import CPU


@needs(Action.TRAINING_SUBMIT)
def job_submit(request: SignedInRequest) -> HttpResponse:
    """GET may begin from `?preset=`, `?set=` (and `?set_version=`), `?clone=`, `?weights=` or `?version=`.

    `?explicit=1` fills in no parameters, for explicit mode; `?outputs_of=` names a job whose outputs it reads. htmx
    gets the choice of presets for `?version=` alone.
    """
    if request.htmx:
        return _render_cards(request)
    has_data = _has_annotated(request.user)
    initial, initial_params, pattern = _beginning(request, has_data=has_data)
    if "gpus_per_node" not in initial:
        initial |= default_device(request.user, PRESETS.get(initial["preset"]))
    form = SubmitForm(
        request.POST or None, request.FILES or None, user=request.user, initial=initial, initial_params=initial_params
    )
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
        if form.is_valid():
            with errors_shown_on(form):
                training_request = drafts.TrainingRequest(**form.request_fields())
                if upload := form.cleaned_data.get("upload_id"):
                    request.user.require(Action.DATASETS_CREATE)
                    return redirect(
                        "training:planned",
                        planned.plan(user=request.user, request=training_request, upload_id=upload).pk,
                    )
                training = jobs.submit(user=request.user, request=training_request)
                return redirect("training:job-detail", training.pk)
        else:
            check_valid_fields(form, drafts.check_parts)
    is_pinned = form.is_bound or pattern is not None or "preset" in request.GET
    version = _version(request.user, form["version"].value())
    context = {
        "form": form,
        "groups": form.groups(),
        "previewed": " ".join(preset.name for preset in PRESETS.values() if preset.looks),
        "pattern": pattern,
        "begun_from": form.begun_from(),
        "is_pinned": is_pinned,
        "default_gpus": drafts.default_gpus(request.user, None),
        "starts": starting_points.groups(request.user, jobs.KIND, request.path),
        "switches": extra_options.list_switches(),
        "standing_extra": drafts.standing_extra(),
        "kept": form.kept_upload(request.user),
        "max_upload": env.MAX_UPLOAD_BYTES,
        "models": pretrained_weights.offered(request.user),
        "models_list": MODELS_LIST,
        "has_data": has_data,
        "any_data": bool(form.fields["version"].rows()),  # type: ignore[attr-defined]  # a choice among rows, declared above
        **preset_cards.context(request.user, version, str(form["preset"].value() or ""), is_pinned=is_pinned),
    }
    return render(request, "training/job_submit.html", context, status=422 if form.errors else 200)


def _render_cards(request: SignedInRequest) -> HttpResponse:
    """Render the choice of presets for a dataset version; `?preset=` is what the user chose, if anything."""
    query = request.GET
    version = _version(request.user, query.get("version", ""))
    context = preset_cards.context(request.user, version, query.get("preset", ""), is_pinned="pinned" in query)
    return render(request, "training/_preset_cards.html", context)


def _version(user: User, value: object) -> DatasetVersion | None:
    number = ids.number(str(value or ""))
    return DatasetVersion.objects.usable_by(user).filter(pk=number).first() if number else None


def default_device(user: User, preset: Preset | None) -> dict[str, Any]:
    """Return initial values of the form's device and GPUs: CPU if the preset or the user's cluster has no GPUs."""
    gpus = drafts.default_gpus(user, preset)
    return {"gpus_per_node": gpus} | ({} if gpus else {"device": CPU.name})


@needs(Action.TRAINING_SUBMIT)
@require_POST
def job_fit(request: SignedInRequest) -> HttpResponse:
    """Render the panel that shows whether the request fits now, waits, or never fits. Incomplete forms are accepted."""
    return render_fit(request, SubmitForm(request.POST, user=request.user), jobs.KIND)


def _beginning(request: SignedInRequest, *, has_data: bool) -> tuple[dict[str, Any], dict[str, dict[str, Any]], Any]:
    """Return initial values of the form, parameters by preset, and the parameter set or training they come from."""
    initial: dict[str, Any] = {
        "preset": next(iter(PRESETS)) if has_data or request.user.can(Action.DATASETS_CREATE) else OWN,
        "cpus": default_cpus(),
    }
    query = request.GET
    initial |= {"explicit": "1"} if query.get("explicit") == "1" else {}
    initial |= {"outputs_of": number} if (number := ids.number(query.get("outputs_of", ""))) else {}
    if version := ids.number(query.get("version", "")):
        initial["version"] = version
        row = DatasetVersion.objects.usable_by(request.user).filter(pk=version).first()
        initial["preset"] = (row and preset_for(row)) or initial["preset"]
    if query.get("preset") in PRESETS or query.get("preset") == OWN:
        initial["preset"] = query["preset"]
    if reference := query.get("weights", ""):
        try:
            preset, params = pretrained_weights.begun_from(request.user, reference)
        except parameters.BadParameter as exc:
            raise Http404(exc.message) from None
        return initial | {"preset": preset}, {preset: params}, reference
    if number := ids.number(query.get("set", "")):
        rows = ParameterSet.objects.visible_to(request.user).usable_by(request.user)
        chosen = get_object_or_404(rows, pk=number, preset__in=PRESETS)
        begun = parameter_sets.version_of(chosen, ids.number(query.get("set_version", "")))
        return initial | {"preset": chosen.preset, "set_version": begun.pk}, {chosen.preset: begun.params}, begun
    if number := ids.number(query.get("clone", "")):
        parent = get_object_or_404(TrainingJob.objects.visible_to(request.user).for_list(), pk=number)
        visible = request_secrets.as_known_to(request.user, parent.job, {"params": parent.params})
        initial |= SCHEMA.initial_of_clone(request.user, parent) | {"name": next_name(parent.job.name)}
        return initial, {parent.preset: visible["params"]}, parent
    return initial, {}, None


def _has_annotated(user: User) -> bool:
    """Whether there is a version that a preset may learn from."""
    return DatasetVersion.objects.usable_by(user).filter(annotated=True).exists()


def next_name(name: str) -> str:
    """`cells` → `cells_2`, `cells_2` → `cells_3`."""
    stem, _underscore, number = name.rpartition("_")
    if stem and number.isascii() and number.isdigit() and len(number) < 6:
        return f"{stem}_{int(number) + 1}"
    return f"{name[:95]}_2"
