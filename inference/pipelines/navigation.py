"""Navigation tab of pipelines, and the badge of approvals to give."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.frame.badges import Badge
from aiplatform.frame.navigation import Tab
from inference.pipelines.models import StepApproval


def tabs() -> list[Tab]:
    """Return the tabs of pipelines, their runs and the approvals that these request."""
    return [
        Tab("pipelines", _("Pipelines"), reverse("pipelines:list"), Action.JOBS_VIEW, order=10),
        Tab("pipelines", _("Runs"), reverse("pipelines:runs-list"), Action.JOBS_VIEW, order=20, icon="play"),
        Tab("pipelines", _("Approvals"), reverse("pipelines:approvals-list"), Action.JOBS_VIEW, order=30, icon="check"),
    ]


def count_approvals(user: User) -> int:
    """Return the number of open questions of pipelines that are put to this user."""
    return StepApproval.objects.answerable_by(user).count()


def approval_words(count: int) -> str:
    """Return the count in words."""
    return ngettext("%(count)s approval to give", "%(count)s approvals to give", count) % {"count": count}


BADGE = Badge("pipelines", Action.JOBS_VIEW, count_approvals, approval_words)
