"""Job templates in the menu "Start from" of the forms of jobs."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from training.job_templates.models import JobTemplate
from training.programs.starting_points import MAX_ROWS, Source, StartingPoint


def templates(user: User, kind: str) -> list[StartingPoint]:
    """Return the templates of a job kind that a user may use."""
    if not user.can(Action.JOBS_SUBMIT):
        return []
    rows = JobTemplate.objects.usable_by(user).filter(kind=kind).select_related("owner")
    return [
        StartingPoint(
            row.name,
            "" if row.owner_id == user.pk else row.owner.get_full_name(),
            reverse("templates:use", args=[row.pk]),
        )
        for row in rows.order_by("-updated_at")[:MAX_ROWS]
    ]


SOURCE = Source("templates", gettext_lazy("Templates"), "bookmark", 20, templates)
