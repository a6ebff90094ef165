"""Filters and orders of the list of edge groups, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import ObjectFilters, Words


class EdgeGroupFilters(ObjectFilters):
    search = Words("name", "wanted__model_label", label=_("Name or model"))
    orders = Ordering("-created", created="pk", name=Lower("name"), owner=Lower("owner__username"))
