"""How lists of models, evaluations and services are sorted, on pages and in the API."""

from __future__ import annotations

from django.db.models import Value
from django.db.models.functions import Coalesce, Lower

from aiplatform.lib.ordering import Ordering, first_figure
from inference.task_kinds import TASKS

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
CONVERSIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    dataset=Lower("data_label"),
    owner=Lower("job__owner__username"),
)
PREDICTIONS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    source=Lower("source_label"),
    owner=Lower("job__owner__username"),
)
VIDEOS = Ordering(
    "-created",
    created="pk",
    name=Lower("job__name"),
    model=Lower("model_label"),
    source=Lower("source_label"),
    owner=Lower("job__owner__username"),
)
VIDEO_FILES = Ordering("-created", created="pk", name=Lower("name"), size="size_bytes", owner=Lower("owner__username"))
VIDEO_EVENTS = Ordering("at", at="at")
EDGE_GROUPS = Ordering("-created", created="pk", name=Lower("name"), owner=Lower("owner__username"))
PUSH_TARGETS = Ordering("-created", created="pk", name=Lower("name"), kind="kind", owner=Lower("owner__username"))
SERVICES = Ordering(
    "-created",
    created="pk",
    name=Lower("name"),
    owner=Lower("owner__username"),
)
