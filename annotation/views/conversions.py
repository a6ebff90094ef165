"""Converting a dataset of a project, and fetching the file."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from annotation.forms import ConvertForm
from annotation.models import Export
from annotation.services import exports, listing
from annotation.views.lookup import manages, project_of, set_of


@needs(Action.ANNOTATION_MANAGE)
@require_POST
def convert(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    project = project_of(request.user, project_pk, manage=True)
    row = set_of(request.user, project, pk)
    form = ConvertForm(request.POST)
    if form.is_valid():
        with errors_as_messages(request):
            exports.start(annotation_set=row, by=request.user, **form.cleaned_data)
    if request.POST.get("back") == "set":
        return redirect("annotation:task-list", project.pk, row.pk)
    return redirect("annotation:project-detail", project.pk)


@needs(Action.ANNOTATION_VIEW)
def newest(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    """The newest conversion on the page of its dataset, polled while it is in progress.

    When it has ended the whole page is loaded again, because its buttons depend on it.
    """
    project = project_of(request.user, project_pk)
    row = set_of(request.user, project, pk)
    leading = listing.next_steps(row, request.user)
    context = {"project": project, "set": row, "mine": manages(request.user, project), **leading}
    response = render(request, "annotation/_conversion.html", context)
    conversion = leading["conversion"]
    if request.htmx and not (conversion and conversion.is_live):
        response["HX-Refresh"] = "true"
    return response


@needs(Action.ANNOTATION_MANAGE)
def download(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponseBase:
    project = project_of(request.user, project_pk, manage=True)
    rows = Export.objects.visible_to(request.user).filter(set__project=project)
    return listing.download(request, get_object_or_404(rows, pk=pk))
