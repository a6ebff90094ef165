"""Pages of pictures that came back to a service."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import files
from aiplatform.lib.downloads import send_file
from aiplatform.lib.pages import errors_shown_on, needs
from inference.serving import tabs
from inference.serving.feedback import samples
from inference.serving.feedback.forms import AnnotateForm
from inference.serving.feedback.models import ServiceSample
from inference.serving.models import Service


@needs(Action.SERVICES_MANAGE)
def sample_list(request: SignedInRequest, pk: int) -> HttpResponse:
    """The pictures that wait; POST makes a dataset of them."""
    service = _own(request, pk)
    rows = samples.waiting(service)
    form = AnnotateForm(request.POST or None, initial={"name": samples.name_for(service, request.user)})
    may_annotate = request.user.can(Action.DATASETS_CREATE)
    if may_annotate and form.is_valid():
        with errors_shown_on(form):
            chosen = request.POST.getlist("samples")
            dataset = samples.annotate(holder=service, name=form.cleaned_data["name"], by=request.user, chosen=chosen)
            return redirect("datasets:import", dataset.pk, dataset.imports.latest("pk").pk)
    context = {
        **tabs.context(service, request.user, "service-samples"),
        "rows": samples.shown(rows[:200]),
        "count": len(rows),
        "form": form,
        "may_annotate": may_annotate,
        "address": request.build_absolute_uri(reverse("api-service-feedback", args=[pk])),
    }
    return render(request, "inference/service_samples.html", context, status=422 if form.errors else 200)


@needs(Action.SERVICES_MANAGE)
def sample_picture(request: SignedInRequest, pk: int, sample: int) -> HttpResponseBase:
    """One of the pictures; kinds that browsers do not show are given as a file."""
    return send_sample(request, _own(request, pk), sample)


def send_sample(request: SignedInRequest, holder: samples.Holder, sample: int) -> HttpResponseBase:
    """The bytes of one of the pictures of a service or of a group of devices."""
    row: ServiceSample = get_object_or_404(holder.samples.all(), pk=sample)
    try:
        opened = files.open_beneath(row.file.parent, row.file.name)
    except (OSError, files.OutsideRoot):
        raise Http404 from None
    return send_file(request, opened, f"{row}.{samples.ENDINGS[row.kind]}", inline=True)


@require_POST
@needs(Action.SERVICES_MANAGE)
def sample_remove(request: SignedInRequest, pk: int, sample: int) -> HttpResponse:
    """Forget one of the pictures."""
    if not samples.remove(holder=_own(request, pk), sample=sample):
        raise Http404
    return redirect("inference:service-samples", pk)


def _own(request: SignedInRequest, pk: int) -> Service:
    rows = Service.objects.editable_by(request.user).select_related("job", "owner", "model_version__model")
    service: Service = get_object_or_404(rows, pk=pk)
    return service
