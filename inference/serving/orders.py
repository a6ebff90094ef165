"""Sort orders of the list of services, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

SERVICES = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    owner=Lower("owner__username"),
)
