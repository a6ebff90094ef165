"""Filters and orders of the list of batch predictions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.objects.filters import Words
from inference.evaluation.jobs.pages import ModelJobFilters, job_orders


class PredictionFilters(ModelJobFilters):
    search = Words("job__name", "model_label", "source_label", label=_("Name, model or images"))
    orders = job_orders(source=Lower("source_label"))
