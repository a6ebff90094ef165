"""Pages of programs of torch: ask for one, download it."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import NotFound
from aiplatform.lib.pages import errors_as_messages, needs
from inference.registry.models import ModelVersion
from inference.registry.torch_export import exports


@require_POST
@needs(Action.MODELS_MANAGE)
def version_torch_export(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue the export of a version that one may use."""
    version = get_object_or_404(ModelVersion.objects.usable_by(request.user).select_related("model"), pk=pk)
    with errors_as_messages(request):
        exports.submit(user=request.user, version=version)
    page = reverse("inference:model-detail", args=[version.model_id])
    return HttpResponseRedirect(f"{page}?version={version.number}#h-torch")


@require_safe
@needs(Action.MODELS_VIEW)
def version_torch(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """The program of a version."""
    version = get_object_or_404(ModelVersion.objects.visible_to(request.user).select_related("model"), pk=pk)
    if (descriptor := exports.open_program(version)) is None:
        raise NotFound(_("This version has no torch program yet. Export it first."))
    return send_file(request, descriptor, exports.filename(version))
