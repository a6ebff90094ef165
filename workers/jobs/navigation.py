"""Navigation of jobs: tabs of the lists of the job kinds, ports and images; badges of approvals and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.frame.badges import Badge
from aiplatform.frame.navigation import Tab
from workers.core.kinds import KINDS
from workers.core.models import Alarm, Approval, Severity


def tabs_of_kinds() -> Iterator[Tab]:
    """Yield a tab for each job kind that has a list of its own."""
    for kind in KINDS:
        if path := kind.list_path():
            yield Tab(kind.section, kind.plural_label(), path, kind.view_action, order=kind.order, icon=kind.icon)


def tabs() -> list[Tab]:
    """Return the tabs of ports and images, which belong to the workspaces."""
    return [
        Tab("workspaces", _("Ports"), reverse("ports:list"), Action.JOBS_VIEW, order=50, icon="port"),
        Tab("workspaces", pgettext_lazy("container", "Images"), reverse("images:list"), Action.JOBS_VIEW, order=60,
            icon="package"),
    ]  # fmt: skip


def count_approvals(user: User) -> int:
    """Return the number of jobs that wait for an approval in clusters that this user administers."""
    mine = {"job__cluster__memberships__user": user, "job__cluster__memberships__administers": True}
    return Approval.objects.holding().filter(**mine).count()


def approval_words(count: int) -> str:
    """Return the count in words."""
    return ngettext("%(count)s job to approve", "%(count)s jobs to approve", count) % {"count": count}


def count_alerts(user: User) -> int:
    """Return the number of active alerts that are worse than a note."""
    return (
        Alarm.objects.visible_to(user)
        .filter(ended_at=None, raised_at__isnull=False)
        .exclude(severity=Severity.INFO)
        .count()
    )


def alert_words(count: int) -> str:
    """Return the count in words."""
    return ngettext("%(count)s active alert", "%(count)s active alerts", count) % {"count": count}


BADGES = (
    Badge("jobs", Action.CLUSTER_ADMINISTER, count_approvals, approval_words),
    Badge("alerts", Action.CLUSTER_MANAGE, count_alerts, alert_words),
)
