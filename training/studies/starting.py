"""The page that begins a study: first of what, then the form for that."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import errors_shown_on, needs
from datasets.models import DatasetVersion
from training.catalog.task_kinds import preset_for
from training.presets.catalog import PRESETS
from training.programs.requests import default_cpus
from training.runs import drafts
from training.runs.forms import OWN
from training.studies import creating, objectives
from training.studies.forms import StudyForm, figure_of
from workers.core.device_kinds import CPU


@needs(Action.TRAINING_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """A new study; `?preset=` says of what ("own": own code), `?version=` on which data. Without both it asks."""
    version = _version(request)
    chosen = request.GET.get("preset") or (preset_for(version) if version else "")
    if chosen not in (*PRESETS, OWN):
        context = {"presets": list(PRESETS.values()), "own": OWN, "has_data": _has_annotated(request)}
        return render(request, "studies/choose.html", context)
    preset = PRESETS.get(chosen)
    form = StudyForm(
        request.POST or None, request.FILES or None, user=request.user, preset=preset,
        initial=_initial(request, chosen, version),
    )  # fmt: skip
    if form.is_bound:
        with errors_shown_on(form):
            form.take_code()
        if form.is_valid():
            with errors_shown_on(form):
                study = creating.create(user=request.user, request=form.study_request())
                return redirect("studies:detail", study.pk)
    rows = form.rows()
    context = {
        "form": form,
        "preset": preset,
        "plain": [row for row in rows if not row["advanced"]],
        "advanced": [row for row in rows if row["advanced"]],
        "open": any(
            row["advanced"] and (row["range"].errors or row["value"].errors or row["range"].value()) for row in rows
        ),
        "curves": dict.fromkeys([figure_of(preset), "val/loss", "train/loss"]),
    }
    return render(request, "studies/new.html", context, status=422 if form.errors else 200)


def _initial(request: SignedInRequest, chosen: str, version: DatasetVersion | None) -> dict[str, Any]:
    preset = PRESETS.get(chosen)
    gpus = drafts.default_gpus(request.user, preset)
    key = figure_of(preset)
    return {
        "name": creating.free_name(
            request.user, version.dataset.name if version else "", preset.name if preset else ""
        ),
        "version": version,
        "key": key,
        "direction": objectives.usual_direction(key),
        "gpus_per_node": gpus,
        **({} if gpus else {"device": CPU.name}),
        "cpus": default_cpus(),
    }


def _version(request: SignedInRequest) -> DatasetVersion | None:
    number = ids.number(request.GET.get("version", ""))
    rows = DatasetVersion.objects.usable_by(request.user).select_related("dataset")
    return rows.filter(pk=number).first() if number else None


def _has_annotated(request: SignedInRequest) -> bool:
    return DatasetVersion.objects.usable_by(request.user).filter(annotated=True).exists()
