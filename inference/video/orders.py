"""Sort orders of lists of videos, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

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
