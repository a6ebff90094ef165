"""Approvals of pipeline steps on the home page."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.approvals import ApprovalSource, Pending
from inference.pipelines.models import StepApproval


def pending_approvals(user: User, limit: int) -> Iterator[Pending]:
    """Yield open questions of pipeline runs that the user has not answered."""
    rows = StepApproval.objects.answerable_by(user).exclude(answers__person=user)
    for row in rows.select_related("step_run__run__pipeline").order_by("pk")[:limit]:
        run = row.step_run.run
        url = f"{reverse('pipelines:run', args=[run.pk])}?step={row.step_run.step}"
        yield Pending(row.question, f"{run.pipeline.name} #{run.number}", url, row.step_run.created_at)


APPROVALS = ApprovalSource("pipelines", _("Pipeline approval"), "pipeline", pending_approvals, needs=Action.JOBS_VIEW)
