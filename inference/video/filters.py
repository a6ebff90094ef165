"""Filters and orders of the lists of video analyses and of uploaded videos, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import ObjectFilters, Words
from inference.evaluation.jobs.pages import ModelJobFilters, job_orders

VIDEO_EVENTS = Ordering("at", at="at")


class VideoFilters(ModelJobFilters):
    search = Words("job__name", "model_label", "source_label", label=_("Name, model or video"))
    orders = job_orders(source=Lower("source_label"))


class VideoFileFilters(ObjectFilters):
    search = Words("name", label=_("Name"))
    orders = Ordering("-created", created="pk", name=Lower("name"), size="size_bytes", owner=Lower("owner__username"))
