"""Pages of pictures that the devices of a group kept, and of the rule by which they do."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_shown_on, needs
from inference.delivery.edge import sampling
from inference.delivery.edge.forms import EdgeSamplingForm
from inference.delivery.edge.models import EdgeGroup
from inference.serving.feedback import samples
from inference.serving.feedback.forms import AnnotateForm
from inference.serving.feedback.views import send_sample


@needs(Action.SERVICES_MANAGE)
def sample_list(request: SignedInRequest, pk: int) -> HttpResponse:
    """The pictures that wait; POST makes a dataset of them."""
    group = _own(request, pk)
    form = AnnotateForm(request.POST or None, initial={"name": samples.name_for(group, request.user)})
    if request.user.can(Action.DATASETS_CREATE) and form.is_valid():
        with errors_shown_on(form):
            chosen = request.POST.getlist("samples")
            dataset = samples.annotate(holder=group, name=form.cleaned_data["name"], by=request.user, chosen=chosen)
            return redirect("datasets:import", dataset.pk, dataset.imports.latest("pk").pk)
    return _page(request, group, form=form)


@require_POST
@needs(Action.SERVICES_MANAGE)
def sample_rule(request: SignedInRequest, pk: int) -> HttpResponse:
    """Set the rule by which devices store images."""
    group, form = _own(request, pk), EdgeSamplingForm(request.POST)
    if form.is_valid():
        with errors_shown_on(form):
            values = form.cleaned_data
            sampling.set_rule(
                group=group, percent=values["keep_percent"], below=values["keep_below"], days=values["keep_days"],
                by=request.user,
            )  # fmt: skip
            return redirect("inference:edge-samples", pk)
    return _page(request, group, rule_form=form)


@needs(Action.SERVICES_MANAGE)
def sample_picture(request: SignedInRequest, pk: int, sample: int) -> HttpResponseBase:
    """One of the pictures."""
    return send_sample(request, _own(request, pk), sample)


@require_POST
@needs(Action.SERVICES_MANAGE)
def sample_remove(request: SignedInRequest, pk: int, sample: int) -> HttpResponse:
    """Delete one of the images."""
    if not samples.remove(holder=_own(request, pk), sample=sample):
        raise Http404
    return redirect("inference:edge-samples", pk)


def _page(
    request: SignedInRequest,
    group: EdgeGroup,
    *,
    form: AnnotateForm | None = None,
    rule_form: EdgeSamplingForm | None = None,
) -> HttpResponse:
    rows = samples.waiting(group)
    rule = {name: getattr(group, name) for name in EdgeSamplingForm.base_fields}
    context = {
        "group": group,
        "rows": samples.shown(rows[:200]),
        "count": len(rows),
        "form": form or AnnotateForm(initial={"name": samples.name_for(group, request.user)}),
        "rule_form": rule_form or EdgeSamplingForm(initial=rule),
        "may_annotate": request.user.can(Action.DATASETS_CREATE),
    }
    has_errors = any(bound is not None and bound.errors for bound in (form, rule_form))
    return render(request, "inference/edge_samples.html", context, status=422 if has_errors else 200)


def _own(request: SignedInRequest, pk: int) -> EdgeGroup:
    rows = EdgeGroup.objects.editable_by(request.user).select_related("owner", "wanted__version__model")
    group: EdgeGroup = get_object_or_404(rows, pk=pk)
    return group
