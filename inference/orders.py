"""How lists of models, evaluations and services are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import FloatField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Lower

from aiplatform.lib.ordering import Ordering
from inference.task_kinds import TASKS

NO_FIGURE = -1.0  # stands for a missing figure: below every share


def _figure(column: str) -> Coalesce:
    """The headline of any task, where the JSON of `column` holds it."""
    keys = [key for task in TASKS.values() for key in task.pages.headline]
    found = (Cast(KT(f"{column}__{key}"), FloatField()) for key in keys)
    return Coalesce(*found, Value(NO_FIGURE))


MODELS = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    versions=Coalesce("newest_number", Value(0)),
    size=Coalesce("newest_bytes", Value(0)),
    owner=Lower("owner__username"),
    changed="updated_at",
)
EVALUATIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    dataset=Lower("version_label"),
    figure=_figure("metrics"),
    owner=Lower("job__owner__username"),
)
SERVICES = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    owner=Lower("owner__username"),
)
