"""Filters and orders of the list of workspaces, for pages and API."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Words
from training.programs.filters import ORDERS, ProgramFilters


class EnvironmentFilters(ProgramFilters):
    search = Words("job__name", "description", label=_("Name or description"))
    orders = Ordering("-created", **ORDERS)
