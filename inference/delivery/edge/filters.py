"""Filters and orders of the list of edge groups, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import ObjectFilters, OfObject, Words
from inference.registry.models import Model


class EdgeGroupFilters(ObjectFilters):
    search = Words("name", "wanted__model_label", label=_("Name or model"))
    model = OfObject(
        "wanted__version__model", Model, label=_("Model"), all_label=_("All models"),
        none_text=_("No edge groups with this model."),
    )  # fmt: skip
    orders = Ordering("-created", created="pk", name=Lower("name"), owner=Lower("owner__username"))
