"""How lists of pipelines and runs are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

PIPELINES = Ordering("-created", created="pk", name=Lower("name"), changed="updated_at", owner=Lower("owner__username"))
RUNS = Ordering(
    "-created", created="pk", pipeline=Lower("pipeline__name"), state="state", owner=Lower("owner__username")
)
