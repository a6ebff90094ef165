"""How the list of annotation projects is sorted."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

PROJECTS = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    sets="set_count",
    owner=Lower("owner__username"),
)
