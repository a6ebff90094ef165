"""Filters and orders of the lists of pipelines and runs, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters, Words
from inference.pipelines.models import PipelineRun, StepRun

RUNS = Ordering(
    "-created", created="pk", pipeline=Lower("pipeline__name"), state="state", owner=Lower("owner__username")
)


class PipelineFilters(ObjectFilters):
    search = Words("name", "description", label=_("Name or description"))
    name = Filter("name")
    mine = Mine()
    orders = Ordering(
        "-created", created="pk", name=Lower("name"), changed="updated_at", owner=Lower("owner__username")
    )


class RunFilters(ObjectFilters):
    search = Words("pipeline__name", label=_("Pipeline"))
    state = Choice("state", PipelineRun.State.choices, label=_("State"), all_label=_("All states"))
    mine = Mine()
    orders = RUNS


APPROVAL_STATES = [(state, StepRun.State(state).label) for state in ("asking", "ok", "failed", "cancelled")]


class ApprovalFilters(ObjectFilters):
    search = Words("question", "step_run__run__pipeline__name", label=_("Question or pipeline"))
    state = Choice("step_run__state", APPROVAL_STATES, label=_("State"), all_label=_("All states"))
    orders = Ordering("-created", created="pk", pipeline=Lower("step_run__run__pipeline__name"))
