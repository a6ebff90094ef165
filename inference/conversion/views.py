"""Pages of conversions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.objects import bulk
from aiplatform.objects.pages import action
from aiplatform.objects.tables import Column, Table
from inference.conversion import conversions, table
from inference.conversion.filters import ConversionFilters
from inference.conversion.forms import ConversionForm
from inference.conversion.models import Conversion
from inference.evaluation.jobs.pages import CREATED, MODEL, NAME, OWNER, STATE, ModelJobPages
from inference.evaluation.models import SPLIT_LABELS


class ConversionPages(ModelJobPages[Conversion]):
    """The pages of conversions."""

    model, filters, form_class = Conversion, ConversionFilters, ConversionForm
    basename, path, url_names = "conversion", "conversions/", {"promote": "conversion-keep"}
    view_permission, change_permission = Action.MODELS_VIEW, Action.MODELS_MANAGE
    submit = staticmethod(conversions.submit)
    variants = Column(_("Variants"), template="inference/_conversion_targets.html")
    dataset = Column(_("Dataset"), "row.data_label", sort="dataset")
    stop_text = _("No variant is promoted.")
    table = Table(
        NAME, STATE, MODEL, dataset, variants, OWNER, CREATED,
        bulk=(bulk.stop("/api/v1/conversions/0/stop/", stop_text),), row_name="row.job.name",
    )  # fmt: skip
    region, art, title = "conversions", "convert", _("Conversions")
    lead = _("Smaller and faster variants of a model, each evaluated on real images before use.")
    filter_label, no_match_text = _("Filter conversions"), _("No conversion matches.")
    empty_text = _("No conversions yet. A conversion makes a model smaller and faster, and measures the loss.")
    new_title = _("New conversion")
    form_lead = _("Each variant is created, evaluated and timed against the original.")
    detail_template, live_template = "inference/conversion_detail.html", "inference/_conversion_variants.html"

    def service_check(self, request: SignedInRequest, row: Conversion | None) -> Callable[..., object]:
        return partial(conversions.check, user=request.user)

    def details(self, request: SignedInRequest, row: Conversion, is_own: bool) -> dict[str, Any]:
        """The variants with what each loses and gains."""
        result = table.build_context(row)
        task = row.version.task if row.version is not None else ""
        return {
            "found": result,
            "on_hardware": table.on_hardware(row),
            "metric_word": table.metric_word(task, result["metric"]),
            "split_word": SPLIT_LABELS.get(row.split, row.split),
        }

    @action(path="<int:pk>/keep/<slug:target>/")
    def promote(self, request: SignedInRequest, row: Conversion, target: str) -> HttpResponse:
        """Make a variant a version of its model."""
        variant = row.variants.filter(target=target).first()
        if variant is None:
            raise Http404
        version = conversions.promote(variant=variant, by=request.user)
        page = reverse("inference:model-detail", args=[version.model_id])
        return HttpResponseRedirect(f"{page}?version={version.number}")
