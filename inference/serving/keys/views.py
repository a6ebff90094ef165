"""Page of the keys of a service."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_shown_on, needs
from inference.serving import tabs
from inference.serving.keys import keys
from inference.serving.keys.forms import KeyForm
from inference.serving.limits import limits_of
from inference.serving.models import Service


@never_cache
@needs(Action.SERVICES_MANAGE)
def key_list(request: SignedInRequest, pk: int) -> HttpResponse:
    """The keys that open a service; a new one is shown once."""
    service, form, made, secret = _own(request, pk), KeyForm(request.POST or None), None, ""
    if form.is_valid():
        with errors_shown_on(form):
            made, secret = keys.issue(service=service, by=request.user, **form.submission())
            form = KeyForm()
    context = {
        **tabs.context(service, request.user, "service-keys"),
        "form": form,
        "made": made,
        "secret": secret,
        "keys": service.keys.filter(revoked_at=None).select_related("created_by"),
        "per_minute": limits_of(service)["per_minute"],
        "address": request.build_absolute_uri(service.url),
    }
    return render(request, "inference/service_keys.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SERVICES_MANAGE)
def key_revoke(request: SignedInRequest, pk: int, key: int) -> HttpResponse:
    """End a key."""
    row = get_object_or_404(_own(request, pk).keys.filter(revoked_at=None), pk=key)
    keys.revoke(key=row, by=request.user)
    messages.success(request, _("API key revoked. Requests with it are rejected."))
    return redirect("inference:service-keys", pk)


def _own(request: SignedInRequest, pk: int) -> Service:
    service: Service = get_object_or_404(Service.objects.editable_by(request.user).select_related("job"), pk=pk)
    return service
