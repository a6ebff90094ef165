"""Filters and orders of the list of conversions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.objects.filters import Words
from inference.evaluation.jobs.pages import ModelJobFilters, job_orders


class ConversionFilters(ModelJobFilters):
    search = Words("job__name", "model_label", "data_label", label=_("Name, model or dataset"))
    orders = job_orders(dataset=Lower("data_label"))
