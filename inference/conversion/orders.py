"""Sort orders of the list of conversions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

CONVERSIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    dataset=Lower("data_label"),
    owner=Lower("job__owner__username"),
)
