"""Sort orders of lists of evaluations, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering, first_figure
from inference.kit.task_kinds import TASKS

EVALUATIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    dataset=Lower("version_label"),
    figure=first_figure("metrics", (key for task in TASKS.values() for key in task.pages.headline)),
    owner=Lower("job__owner__username"),
)
EVALUATION_SETS = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    task="task",
    owner=Lower("owner__username"),
    changed="updated_at",
)
