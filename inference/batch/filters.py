"""Filters and orders of the list of batch predictions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Words
from inference.evaluation.job_lists import JobRowFilters


class PredictionFilters(JobRowFilters):
    search = Words("job__name", "model_label", "source_label", label=_("Name, model or images"))
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("job__name"),
        model=Lower("model_label"),
        source=Lower("source_label"),
        owner=Lower("job__owner__username"),
    )
