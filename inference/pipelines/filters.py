"""Filters and orders of the lists of pipelines and runs, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Mine, ObjectFilters, Words

RUNS = Ordering(
    "-created", created="pk", pipeline=Lower("pipeline__name"), state="state", owner=Lower("owner__username")
)


class PipelineFilters(ObjectFilters):
    search = Words("name", "description", label=_("Name or description"))
    name = Filter("name")
    mine = Mine()
    orders = Ordering(
        "-created", created="pk", name=Lower("name"), changed="updated_at", owner=Lower("owner__username")
    )
