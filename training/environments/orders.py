"""How lists of environments are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    cards="job__gpus_per_node",
    owner=Lower("job__owner__username"),
)
