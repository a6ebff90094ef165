"""Filters and orders of the list of custom jobs, for pages and API."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Words
from training.programs.filters import ORDERS, ProgramFilters


class CommandFilters(ProgramFilters):
    search = Words("job__name", "script", label=_("Name or command"))
    orders = Ordering("-created", **ORDERS)
