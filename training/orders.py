"""How lists of trainings and parameter sets are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import F, FloatField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Lower

from aiplatform.lib.ordering import Ordering
from training.task_kinds import TASKS

NO_FIGURE = -1.0  # stands for a missing figure: below every share

ORDERING = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    dataset=Lower("version_label"),
    figure=Coalesce(
        *(Cast(KT(f"metrics__{task.figure[0]}"), FloatField()) for task in TASKS if task.figure[0]),
        Value(NO_FIGURE),
    ),
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
