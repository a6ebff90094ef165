"""How lists of templates are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-changed", changed="updated_at", name=Lower("name"), kind="kind", owner=Lower("owner__username"), created="pk"
)
