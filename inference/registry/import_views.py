"""Pages of imports that wait for a confirmation: what was detected, a trial on images, the new version."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from inference.registry.import_forms import ConfirmForm, DetailsForm, ExamplesForm
from inference.registry.import_trials import drafts, labels, panel, trials
from inference.registry.inspector.detection import MISSING, Detection
from inference.registry.models import ModelImport, ModelTask


def _find(request: SignedInRequest, pk: int) -> ModelImport:
    rows = ModelImport.objects.editable_by(request.user).select_related("owner", "model", "trial__job__owner")
    row: ModelImport = get_object_or_404(rows, pk=pk)
    return row


@needs(Action.MODELS_MANAGE)
@require_safe
def model_import(request: SignedInRequest, pk: int) -> HttpResponse:
    """What was detected in the files, with the trial and the confirmation; htmx fetches the trial alone."""
    row = _find(request, pk)
    if request.htmx:
        context = {"row": row} | _trial(request, row)
        if context["panel"]:  # the buttons of the page depend on the result
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "inference/_import_trial.html", context)
    return _page(request, row)


def _page(request: SignedInRequest, row: ModelImport, status: int = 200, **forms: Any) -> HttpResponse:
    detection = drafts.detection_of(row)
    context = {
        "row": row,
        "values": labels.detected(detection) if detection else labels.described(row.contents),
        "is_guess": detection is not None and detection.is_guess,
        "is_missing": detection is not None and any(value.source == MISSING for value in detection.values),
        "has_outputs": _has_outputs(detection),
        "interpretations": detection.interpretations if detection else 0,
        "can_edit": detection is not None or bool(row.torch),
        "details": _details_form(request, row, detection),
        "examples": ExamplesForm(user=request.user),
        "form": ConfirmForm(initial={"name": row.name}, model=row.model),
    } | _trial(request, row) | forms  # fmt: skip
    return render(request, "inference/model_import.html", context, status=status)


def _has_outputs(detection: Detection | None) -> bool:
    """Whether the platform can read the outputs, so that a trial has something to show."""
    return detection is not None and (detection.declaration is not None or bool(detection.refusals))


def _details_form(request: SignedInRequest, row: ModelImport, detection: Detection | None) -> DetailsForm:
    """Fill the form with what was entered; fields that are left empty name what was detected."""
    entered = asdict(drafts.declared_of(row))
    initial = {name: value or "" for name, value in entered.items()} | {"labels": "\n".join(entered["labels"])}
    form = DetailsForm(user=request.user, initial=initial)
    form.name_detected(labels.detected_texts(detection) if detection else {})
    return form


def _trial(request: SignedInRequest, row: ModelImport) -> dict[str, Any]:
    if row.trial is None:
        return {"job": None, "panel": None}
    job = row.trial.job
    return {"job": job, "panel": panel.context(job, request.user)}


@require_POST
@needs(Action.MODELS_MANAGE)
def import_details(request: SignedInRequest, pk: int) -> HttpResponse:
    """Store what the user enters about the model."""
    row = _find(request, pk)
    form = DetailsForm(request.POST, user=request.user)
    if form.is_valid():
        with errors_shown_on(form):
            drafts.edit(row, form.declared())
            return redirect("inference:model-import", row.pk)
    if (detection := drafts.detection_of(row)) is not None:
        form.name_detected(labels.detected_texts(detection))
    return _page(request, row, 422, details=form)


@require_POST
@needs(Action.MODELS_MANAGE)
def import_try(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue a trial on images."""
    row = _find(request, pk)
    form = ExamplesForm(request.POST, request.FILES, user=request.user)
    if form.is_valid():
        with errors_shown_on(form), trials.examples(form.cleaned_data["pictures"]) as pictures:
            version = form.cleaned_data["dataset"]
            drafts.submit_trial(row=row, by=request.user, pictures=pictures, version=version)
            return redirect(f"{reverse('inference:model-import', args=[row.pk])}#h-try")
    return _page(request, row, 422, examples=form)


@require_POST
@needs(Action.MODELS_MANAGE)
def import_confirm(request: SignedInRequest, pk: int) -> HttpResponse:
    """Create the model or the version."""
    row = _find(request, pk)
    form = ConfirmForm(request.POST, model=row.model)
    if form.is_valid():
        with errors_shown_on(form):
            made = drafts.confirm(row=row, by=request.user, **form.cleaned_data)
            if isinstance(made, ModelTask):
                return redirect("workers:job", made.job_id)
            page = reverse("inference:model-detail", args=[made.model_id])
            return HttpResponseRedirect(f"{page}?version={made.number}")
    return _page(request, row, 422, form=form)


@require_POST
@needs(Action.MODELS_MANAGE)
def import_discard(request: SignedInRequest, pk: int) -> HttpResponse:
    """Remove the files that were brought in."""
    row = _find(request, pk)
    model = row.model_id
    with errors_as_messages(request):
        drafts.discard(row)
    return redirect("inference:model-detail", model) if model else redirect("inference:model-upload")
