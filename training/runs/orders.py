"""How lists of trainings and parameter sets are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import F
from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering, first_figure
from training.catalog.task_kinds import TASKS

ORDERING = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    dataset=Lower("version_label"),
    figure=first_figure("metrics", (task.figure[0] for task in TASKS if task.figure[0])),
    cards=F("job__nodes") * F("job__gpus_per_node"),
    owner=Lower("job__owner__username"),
)
PARAMETER_SETS = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    preset="preset",
    owner=Lower("owner__username"),
    changed="updated_at",
)
