"""How lists of reports are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-changed", changed="updated_at", title=Lower("title"), owner=Lower("owner__username"), created="pk"
)
