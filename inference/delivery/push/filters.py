"""Filters and orders of the lists of push targets and pushes, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, ObjectFilters, Words
from inference.delivery.push.models import Push


class PushTargetFilters(ObjectFilters):
    search = Words("name", "address", label=_("Name or address"))
    orders = Ordering("-created", created="pk", name=Lower("name"), kind="kind", owner=Lower("owner__username"))


class PushFilters(ObjectFilters):
    state = Choice("state", Push.State.choices)
    search = Words("model_name", "target_name")
