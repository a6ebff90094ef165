"""Where evaluations and services run: the cluster, and what of the machines they ask for."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from workers.models import Job, Membership, VirtualCluster


class NotAMember(DomainError):
    code = "not_a_member"
    status = 403
    field = "cluster"


def cluster_for(user: User, cluster: VirtualCluster | None) -> VirtualCluster:
    """The asked cluster, or the person's current one.

    Raises:
        NotAMember: they do not belong to it, or to any.
    """
    memberships = Membership.objects.filter(user=user).select_related("cluster").order_by("-is_current", "pk")
    if cluster is None:
        first = memberships.first()
        if first is None:
            raise NotAMember(_("You belong to no virtual cluster yet. Ask an administrator to add you to one."))
        return first.cluster
    if not memberships.filter(cluster=cluster).exists():
        raise NotAMember(_("You do not belong to the cluster “%(name)s”.") % {"name": cluster.name})
    return cluster


def check_priority(user: User, priority: int) -> None:
    """The urgent tier is for operators.

    Raises:
        Invalid, NotAllowed.
    """
    if not -100 <= priority <= 32_000:
        raise Invalid(_("A priority is a number from -100 to 32000."), field="priority")
    if priority >= Job.URGENT and not user.can(Action.TASKS_MANAGE):
        raise NotAllowed(_("Priorities of %(limit)s and more are for operators.") % {"limit": Job.URGENT})
