"""Filters and orders of the lists of video analyses and of uploaded videos, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import ObjectFilters, Words
from inference.evaluation.job_lists import JobRowFilters

VIDEO_EVENTS = Ordering("at", at="at")


class VideoFilters(JobRowFilters):
    search = Words("job__name", "model_label", "source_label", label=_("Name, model or video"))
    orders = Ordering(
        "-created",
        created="pk",
        name=Lower("job__name"),
        model=Lower("model_label"),
        source=Lower("source_label"),
        owner=Lower("job__owner__username"),
    )


class VideoFileFilters(ObjectFilters):
    search = Words("name", label=_("Name"))
    orders = Ordering("-created", created="pk", name=Lower("name"), size="size_bytes", owner=Lower("owner__username"))
