"""How lists of jobs are sorted, on the page and in the API."""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Coalesce, Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    kind="kind",
    state="state",
    owner=Lower("owner__username"),
    cluster=Lower("cluster__name"),
    cards=F("nodes") * F("gpus_per_node"),
)

ARRAY_ORDERING = Ordering("index", index=Coalesce("array_index", 0), state="state")
"""The jobs of one array."""
