"""Pages of a dataset of a project: form, row of the list, grid of its images."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs
from annotation.forms import ConvertForm, LabelRows, NewSetForm, SetForm, TilesForm
from annotation.models import AnnotationSet, ImageTask
from annotation.services import drawings, listing, sets, tiles
from annotation.views.lookup import manages, project_of, set_of
from datasets.formats.exports import FORMATS
from datasets.models import DatasetVersion

FINISHED = [ImageTask.State.SUBMITTED, ImageTask.State.ACCEPTED]


@needs(Action.ANNOTATION_MANAGE)
def set_create(request: SignedInRequest, project_pk: int) -> HttpResponse:
    """The form of a dataset of the project; `?source=` fills in a version."""
    project = project_of(request.user, project_pk, manage=True)
    source = DatasetVersion.objects.usable_by(request.user).filter(pk=ids.number(request.GET.get("source", ""))).first()
    initial = {"source": source, "name": str(source)} if source else {}
    form = NewSetForm(request.POST or None, user=request.user, initial=initial)
    rows = LabelRows(request.POST or None, prefix="labels")
    if request.method == "POST" and all([form.is_valid(), rows.is_valid()]):
        fields = dict(form.cleaned_data)
        fields.pop("kind")
        labels = [row for row in rows.cleaned_data if row]
        with errors_shown_on(form):
            made = sets.create(project=project, by=request.user, labels=labels, **fields)
            classes = labels or made.source.classes
            return redirect("annotation:task-list" if classes else "annotation:label-list", project.pk, made.pk)
    elif form.is_bound:
        check_valid_fields(form, sets.check, project=project)
    context = {"project": project, "form": form, "rows": rows}
    return render(request, "annotation/set_form.html", context, status=422 if form.errors or any(rows.errors) else 200)


@needs(Action.ANNOTATION_MANAGE)
def set_edit(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    row = set_of(request.user, project, pk)
    initial = {"name": row.name, "intro": row.intro, "visibility": row.visibility}
    form = SetForm(request.POST or None, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            sets.edit(row, **form.cleaned_data)
            return redirect("annotation:project-detail", project.pk)
        row.refresh_from_db()
    context = {"project": project, "set": row, "form": form}
    return render(request, "annotation/set_form.html", context, status=422 if form.errors else 200)


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def set_delete(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    row = set_of(request.user, project, pk)
    if is_name_confirmed(request, row.name):
        sets.delete(row)
        messages.info(request, _("%(name)s was removed from this project.") % {"name": row.name})
    return redirect("annotation:project-detail", project.pk)


@needs(Action.ANNOTATION_VIEW)
def set_row(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    """The row of a dataset alone, polled while a conversion runs."""
    project = project_of(request.user, project_pk)
    row: Any = set_of(request.user, project, pk)
    facts = listing.facts_of([row])
    row.progress = facts["progress"][row.pk]
    row.conversion = facts["conversions"].get(row.pk)
    context = {"project": project, "set": row, "mine": manages(request.user, project)}
    return render(request, "annotation/_set_row.html", context)


@needs(Action.ANNOTATION_VIEW)
def task_list(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    """Images of a dataset as tiles, by state, class and objects. htmx gets the tiles alone."""
    project = project_of(request.user, project_pk)
    row = set_of(request.user, project, pk)
    labels = list(row.labels.filter(retired=False))
    form = TilesForm(request.GET, labels=labels)
    wanted = form.wanted()
    rows = ImageTask.objects.visible_to(request.user).filter(set=row)
    shown = tiles.page(rows, **wanted, start=request.GET.get("start", ""))
    pictures = drawings.for_tasks(shown.rows)
    for task in shown.rows:
        task.drawing = pictures.get(task.pk, "")  # type: ignore[attr-defined]  # for the template alone
    context = {
        "project": project,
        "set": row,
        "progress": listing.facts_of([row])["progress"][row.pk],
        "page": shown,
        **wanted,
    }
    if request.htmx and row.filled and "preparing" in request.GET:
        return HttpResponse(headers={"HX-Refresh": "true"})  # the head of the page has its buttons now
    if request.htmx:
        return render(request, "annotation/_tiles.html", context)
    draws = AnnotationSet.objects.annotatable_by(request.user).filter(pk=row.pk).exists()
    judges = AnnotationSet.objects.reviewable_by(request.user).filter(pk=row.pk).exists()
    first_open = rows.exclude(state__in=FINISHED).order_by("number").first() if draws else None
    if "annotate" in request.GET and first_open is not None:  # the project was created to annotate it at once
        return redirect("annotation:annotate", project.pk, first_open.pk)
    context |= {
        "mine": manages(request.user, project),
        "filters": form.fields,
        "convert_form": ConvertForm(auto_id=False),
        "export_formats": FORMATS,
        **listing.next_steps(row, request.user),
        "labels": labels,
        "first_open": first_open,
        "first_submitted": rows.filter(state=ImageTask.State.SUBMITTED).order_by("number").first() if judges else None,
    }
    return render(request, "annotation/task_list.html", context)
