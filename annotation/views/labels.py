"""Classes of a dataset."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_shown_on, needs
from annotation.forms import LabelForm, NewLabelForm
from annotation.models import AnnotationProject, AnnotationSet, LabelClass
from annotation.services import sets
from annotation.views.lookup import project_of, set_of


@needs(Action.ANNOTATION_MANAGE)
def label_list(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    row = set_of(request.user, project, pk)
    form = NewLabelForm(request.POST or None)
    if form.is_valid():
        with errors_shown_on(form):
            sets.add_label(row, **form.cleaned_data)
            return redirect("annotation:label-list", project.pk, row.pk)
    labels = (
        LabelClass.objects.visible_to(request.user)
        .filter(set=row, retired=False)
        .annotate(used=Count("shapes", filter=Q(shapes__deleted=False)))
    )
    parents = sorted({label.supercategory for label in labels} - {""})
    context = {"project": project, "set": row, "form": form, "labels": labels, "parents": parents}
    return render(request, "annotation/label_list.html", context, status=422 if form.errors else 200)


@needs(Action.ANNOTATION_MANAGE)
def label_edit(request: SignedInRequest, project_pk: int, pk: int, label_pk: int) -> HttpResponse:
    project, row, label = _find(request, project_pk, pk, label_pk)
    initial = {name: getattr(label, name) for name in ("name", "supercategory", "shape", "colour")}
    form = LabelForm(request.POST or None, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            sets.edit_label(label, **form.cleaned_data)
            return redirect("annotation:label-list", project.pk, row.pk)
        label.refresh_from_db()
    parents = row.labels.filter(retired=False).exclude(supercategory="").values_list("supercategory", flat=True)
    context = {"project": project, "set": row, "label": label, "form": form, "parents": sorted(set(parents))}
    return render(request, "annotation/label_form.html", context, status=422 if form.errors else 200)


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def label_remove(request: SignedInRequest, project_pk: int, pk: int, label_pk: int) -> HttpResponse:
    project, row, label = _find(request, project_pk, pk, label_pk)
    try:
        sets.remove_label(label)
    except sets.ClassInUse as refusal:
        messages.error(request, refusal.message)
    return redirect("annotation:label-list", project.pk, row.pk)


def _find(
    request: SignedInRequest, project_pk: int, pk: int, label_pk: int
) -> tuple[AnnotationProject, AnnotationSet, LabelClass]:
    project = project_of(request.user, project_pk, manage=True)
    row = set_of(request.user, project, pk)
    rows = LabelClass.objects.visible_to(request.user).filter(set=row, retired=False)
    return project, row, get_object_or_404(rows, pk=label_pk)
