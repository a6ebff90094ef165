"""Filters and orders of the list of job templates, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Mine, ObjectFilters, Words


class TemplateFilters(ObjectFilters):
    search = Words("name", "description", label=_("Name or description"))
    name = Filter("name")
    mine = Mine()
    orders = Ordering(
        "-changed", changed="updated_at", name=Lower("name"), kind="kind", owner=Lower("owner__username"), created="pk"
    )
