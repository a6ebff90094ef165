"""Filters and orders of the list of reports, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Mine, ObjectFilters, Words


class ReportFilters(ObjectFilters):
    search = Words("title", "text", label=_("Title or text"))
    mine = Mine()
    orders = Ordering(
        "-changed", changed="updated_at", title=Lower("title"), owner=Lower("owner__username"), created="pk"
    )
