"""How lists of datasets are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower

from aiplatform.lib.ordering import Ordering

DATASETS = Ordering(
    "-changed",
    changed="updated_at",
    created="pk",
    name=Lower("name"),
    version=Coalesce("newest_number", Value(0)),
    images=Coalesce("newest_images", Value(0)),
    size=Coalesce("newest_bytes", Value(0)),
    owner=Lower("owner__username"),
)
