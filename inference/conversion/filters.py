"""Filters and orders of the list of conversions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.objects.filters import OfObject, Words
from inference.evaluation.jobs.pages import ModelJobFilters, job_orders
from inference.registry.models import Model


class ConversionFilters(ModelJobFilters):
    search = Words("job__name", "model_label", "data_label", label=_("Name, model or dataset"))
    model = OfObject(
        "version__model", Model, label=_("Model"), all_label=_("All models"),
        none_text=_("No conversions of this model."),
    )  # fmt: skip
    orders = job_orders(dataset=Lower("data_label"))
