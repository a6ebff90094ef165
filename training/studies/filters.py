"""Filters and orders of the list of studies, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters, Words
from training.studies.models import Study


class StudyFilters(ObjectFilters):
    search = Words("name", "description", "preset", "version_label", label=_("Name, preset or dataset"))
    state = Choice("state", Study.State.choices, label=_("State"), all_label=_("All states"))
    name = Filter("name")
    mine = Mine()
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("name"),
        state="state",
        owner=Lower("owner__username"),
        dataset="version_label",
    )
