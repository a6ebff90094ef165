"""Filters and orders of the lists of trainings and parameter sets, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering, first_figure
from aiplatform.objects.filters import ObjectFilters, Words
from training.catalog.task_kinds import TASKS
from training.programs.filters import ORDERS, ProgramFilters


class TrainingFilters(ProgramFilters):
    search = Words("job__name", "description", "preset", "version_label", label=_("Name, preset or dataset"))
    orders = Ordering(
        "-created",
        dataset=Lower("version_label"),
        figure=first_figure("metrics", (task.figure[0] for task in TASKS if task.figure[0])),
        **ORDERS,
    )


class ParameterSetFilters(ObjectFilters):
    search = Words("name", "description", "preset", label=_("Name"))
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("name"),
        preset="preset",
        owner=Lower("owner__username"),
        changed="updated_at",
    )
