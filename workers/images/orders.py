"""How lists of images are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower

from aiplatform.lib.ordering import Ordering

ORDERING = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    kind="kind",
    owner=Coalesce(Lower("owner__username"), Value("")),
)
