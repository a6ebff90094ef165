"""Sort orders of the list of models, for pages and API."""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower

from aiplatform.lib.ordering import Ordering

MODELS = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    versions=Coalesce("newest_number", Value(0)),
    size=Coalesce("newest_bytes", Value(0)),
    owner=Lower("owner__username"),
    changed="updated_at",
)
