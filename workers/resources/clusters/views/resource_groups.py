"""Resource groups: what machines are kept for, and when."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import check_valid_fields, errors_shown_on, is_name_confirmed, needs
from workers.core.models import ResourceGroup
from workers.resources.clusters import resource_groups
from workers.resources.clusters.forms.resource_groups import WEEKDAYS, ResourceGroupForm, windows_form


@require_GET
@needs(Action.CLUSTER_MANAGE)
def index(request: SignedInRequest) -> HttpResponse:
    """All groups, and which of them are open now."""
    labels, days = dict(resource_groups.kind_choices()), dict(WEEKDAYS)
    rows = list(ResourceGroup.objects.visible_to(request.user).prefetch_related("nodes", "windows"))
    for row in rows:
        row.now = resource_groups.opening(row, now())
        row.kind_words = [labels.get(kind, kind) for kind in row.kinds]
        row.hours = [(", ".join(str(days[day]) for day in window.weekdays), window) for window in row.windows.all()]
    shown = {"groups": rows, "zone": settings.TIME_ZONE, "in_vain": resource_groups.list_unusable()}
    return render(request, "workers/resource_groups.html", shown)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def create(request: SignedInRequest) -> HttpResponse:
    """A new group."""
    return _form(request, None)


@require_http_methods(["GET", "POST"])
@needs(Action.CLUSTER_MANAGE)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change a group."""
    return _form(request, get_object_or_404(ResourceGroup.objects.visible_to(request.user), pk=pk))


@require_POST
@needs(Action.CLUSTER_MANAGE)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let everybody start on its machines again."""
    group = get_object_or_404(ResourceGroup.objects.visible_to(request.user), pk=pk)
    name = group.name
    if not is_name_confirmed(request, name):
        return redirect("workers:resource-group", pk)
    resource_groups.delete(group, by=request.user)
    messages.info(request, _("Resource group %(name)s deleted.") % {"name": name})
    return redirect("workers:resource-groups")


def _form(request: SignedInRequest, group: ResourceGroup | None) -> HttpResponse:
    form = ResourceGroupForm(request.POST or None, user=request.user, group=group)
    windows = windows_form(request.POST or None, group=group)
    if request.method == "POST" and all([form.is_valid(), windows.is_valid()]):
        hours = [window for window in (part.hours() for part in windows) if window]
        with errors_shown_on(form):
            resource_groups.save(group, **form.cleaned_data, hours=hours, by=request.user)
            messages.info(request, _("Saved. Applies to jobs that start from now on; running jobs continue."))
            return redirect("workers:resource-groups")
    else:
        check_valid_fields(form, partial(resource_groups.check, group))
    context = {"form": form, "windows": windows, "group": group, "zone": settings.TIME_ZONE}
    wrong = form.errors or (windows.is_bound and not windows.is_valid())
    return render(request, "workers/resource_group_form.html", context, status=422 if wrong else 200)
