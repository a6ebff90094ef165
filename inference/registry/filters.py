"""Filters and orders of the list of models, for pages and API."""

from __future__ import annotations

from typing import Any

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering, first_figure
from aiplatform.objects.filters import Choice, Mine, Number, ObjectFilters, Words
from inference.registry import metric_labels, task_labels
from inference.registry.models import Stage


def _with_version(rows: Any, name: str, value: str) -> Any:
    return rows.with_version(**{name: value})


class ModelFilters(ObjectFilters):
    """`task`, `stage` and `alias` keep models with such a version, `group` those of the members of a group."""

    search = Words("name", "description", label=_("Name or description"))
    task = Choice("task", task_labels.choices(), all_label=_("All tasks"), label=_("Task"), method=_with_version)
    stage = Choice("stage", Stage.choices, all_label=_("All stages"), label=_("Stage"), method=_with_version)
    alias = Filter("aliases__name", method=_with_version)
    group = Number("owner__user_groups")
    mine = Mine()
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("name"),
        versions=Coalesce("newest_number", Value(0)),
        dataset=Coalesce(Lower("newest_data"), Value("")),
        figure=first_figure("newest_metrics", metric_labels.sort_keys()),
        size=Coalesce("newest_bytes", Value(0)),
        owner=Lower("owner__username"),
        changed="updated_at",
    )
