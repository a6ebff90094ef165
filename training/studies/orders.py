"""How lists of studies are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-created", created="pk", name=Lower("name"), state="state", owner=Lower("owner__username"), dataset="version_label"
)
