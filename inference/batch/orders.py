"""Sort orders of the list of batch predictions, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

PREDICTIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    source=Lower("source_label"),
    owner=Lower("job__owner__username"),
)
