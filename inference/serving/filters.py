"""Filters and orders of the list of services, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Mine, ObjectFilters, OfObject, Words
from inference.registry.models import Model


class ServiceFilters(ObjectFilters):
    search = Words("name", "description", "model_version__model__name", label=_("Name, model or description"))
    model = OfObject(
        "model_version__model", Model, label=_("Model"), all_label=_("All models"),
        none_text=_("No endpoints of this model."),
    )  # fmt: skip
    mine = Mine()
    orders = Ordering("-created", created="pk", name=Lower("name"), owner=Lower("owner__username"))
