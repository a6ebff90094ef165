"""Pages of conversions."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, needs
from aiplatform.objects.tables import Column, Table
from inference.conversion import conversions, table
from inference.conversion.filters import ConversionFilters
from inference.conversion.forms import ConversionForm
from inference.conversion.models import Conversion
from inference.evaluation import evaluations
from inference.evaluation.job_lists import CREATED, MODEL, NAME, OWNER, STATE, JobRowPages
from inference.evaluation.models import SPLIT_LABELS
from workers.jobs import actions
from workers.jobs.resource_request import Resources
from workers.scheduling import preview


class ConversionPages(JobRowPages[Conversion]):
    """The list of conversions."""

    model, filters = Conversion, ConversionFilters
    basename, path, url_names = "conversion", "conversions/", {"detail": "conversion-detail"}
    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    variants = Column(_("Variants"), template="inference/_conversion_targets.html")
    dataset = Column(_("Dataset"), "row.data_label", sort="dataset")
    table = Table(NAME, STATE, MODEL, dataset, variants, OWNER, CREATED)
    region, title = "conversions", _("Conversions")
    lead = _("Smaller and faster variants of a model, each evaluated on real images before use.")
    filter_label, no_match_text = _("Filter conversions"), _("No conversion matches.")
    empty_text = _("No conversions yet. A conversion makes a model smaller and faster, and measures the loss.")
    new_title = _("New conversion")


@needs(Action.MODELS_MANAGE)
def conversion_new(request: SignedInRequest) -> HttpResponse:
    """The form of a conversion; `?model_version=` and `?version=` fill in what is known."""
    initial = {name: request.GET[name] for name in ("model_version", "version") if name in request.GET}
    form = ConversionForm(request.POST or None, user=request.user, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            conversion = conversions.submit(user=request.user, **form.submission())
            return redirect("inference:conversion-detail", conversion.pk)
    else:
        check_valid_fields(form, conversions.check, user=request.user)
    context = {
        "form": form,
        "advanced": [form[name] for name in form.ADVANCED],
        "list_url": reverse("inference:conversion-list"),
        "fit_url": reverse("inference:conversion-fit"),
    }
    return render(request, "inference/conversion_new.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.MODELS_MANAGE)
def conversion_fit(request: SignedInRequest) -> HttpResponse:
    """The panel in the form: whether it would start now. Incomplete forms are fine."""
    form = ConversionForm(request.POST, user=request.user)
    form.is_valid()
    resources: Resources = {"cpus": evaluations.DEFAULT_CPUS, **form.resources()}
    verdict = preview.preview_request(request.user, resources, kind=conversions.KIND, unclear=form.unclear())
    return render(request, "workers/_fit.html", {"verdict": verdict})


@needs(Action.MODELS_VIEW)
def conversion_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The variants with what each loses and gains. htmx polls the table until the job is over."""
    conversion = _visible(request, pk)
    context = _shown(request, conversion)
    if request.htmx:
        if conversion.job.is_final:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return render(request, "inference/_conversion_variants.html", context)
    return render(request, "inference/conversion_detail.html", context)


def _shown(request: SignedInRequest, conversion: Conversion) -> dict[str, Any]:
    result = table.build_context(conversion)
    source = conversion.version
    task = source.task if source is not None else ""
    own = Conversion.objects.editable_by(request.user).filter(pk=conversion.pk).exists()
    return {
        "conversion": conversion,
        "found": result,
        "on_hardware": table.on_hardware(conversion),
        "metric_word": table.metric_word(task, result["metric"]),
        "split_word": SPLIT_LABELS.get(conversion.split, conversion.split),
        "may_control": own and request.user.can(Action.MODELS_MANAGE),
    }


@require_POST
@needs(Action.MODELS_MANAGE)
def conversion_stop(request: SignedInRequest, pk: int) -> HttpResponse:
    """Request a stop."""
    rows = Conversion.objects.editable_by(request.user).select_related("job")
    actions.stop(get_object_or_404(rows, pk=pk).job, by=request.user)
    return redirect("inference:conversion-detail", pk)


@require_POST
@needs(Action.MODELS_MANAGE)
def conversion_keep(request: SignedInRequest, pk: int, target: str) -> HttpResponse:
    """Make a variant a version of its model."""
    conversion = get_object_or_404(Conversion.objects.editable_by(request.user).for_list(), pk=pk)
    variant = conversion.variants.filter(target=target).first()
    if variant is None:
        raise Http404
    with errors_as_messages(request):
        version = conversions.promote(variant=variant, by=request.user)
        page = reverse("inference:model-detail", args=[version.model_id])
        return HttpResponseRedirect(f"{page}?version={version.number}")
    return redirect("inference:conversion-detail", pk)


def _visible(request: SignedInRequest, pk: int) -> Conversion:
    conversion: Conversion = get_object_or_404(Conversion.objects.visible_to(request.user).for_list(), pk=pk)
    return conversion
