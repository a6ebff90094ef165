"""Filters and orders of the lists of pipelines and runs, for pages and API."""

from __future__ import annotations

from django.db.models import QuerySet
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _
from django_filters import Filter

from aiplatform.lib.ordering import Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters, Words
from inference.pipelines.approvals import ANSWERS
from inference.pipelines.models import PipelineRun, StepApproval, StepRun

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


APPROVAL_STATES = [
    ("asking", _("Awaiting approval")),
    ("passed", _("Approved")),
    ("refused", _("Rejected")),
    ("failed", StepRun.State.FAILED.label),
    ("cancelled", StepRun.State.CANCELLED.label),
]


def by_approval_state(rows: QuerySet[StepApproval], _name: str, value: str) -> QuerySet[StepApproval]:
    """Keep approvals with a decision, or whose step has a state."""
    if value in ANSWERS:
        return rows.filter(step_run__answer=value)
    return rows.filter(step_run__state=value)


class ApprovalFilters(ObjectFilters):
    search = Words("question", "step_run__run__pipeline__name", label=_("Question or pipeline"))
    state = Choice(
        "step_run__state", APPROVAL_STATES, label=_("State"), method=by_approval_state, all_label=_("All states")
    )
    orders = Ordering("-created", created="pk", pipeline=Lower("step_run__run__pipeline__name"))
