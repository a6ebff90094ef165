"""The site with the pages of notebooks."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import include, path

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform import urls as site
from aiplatform.lib.pages import needs
from workers.core.models import Job

handler400, handler403, handler404, handler500 = site.handler400, site.handler403, site.handler404, site.handler500


@needs(Action.JOBS_VIEW)
def notebooks(request: SignedInRequest) -> HttpResponse:
    names = Job.objects.visible_to(request.user).filter(kind="notebook").values_list("name", flat=True)
    return HttpResponse("\n".join(names))


@needs(Action.JOBS_VIEW)
def notebook(request: SignedInRequest, pk: int) -> HttpResponse:
    return HttpResponse(get_object_or_404(Job.objects.visible_to(request.user), pk=pk, kind="notebook").name)


pages = [path("", notebooks, name="list"), path("<int:pk>/", notebook, name="detail")]
urlpatterns = [path("notebooks/", include((pages, "notebooks"))), *site.urlpatterns]
