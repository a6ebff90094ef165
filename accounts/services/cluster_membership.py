"""Giving people clusters and taking them away."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access import clusters
from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import DomainError, NotAllowed


def check(changed: Collection[int], *, by: User) -> None:
    """Refuse to give or take clusters that `by` neither manages nor is in.

    Raises:
        NotAllowed.
    """
    if changed and not by.can(Action.CLUSTER_MANAGE) and not set(changed) <= set(clusters.ids_for_user(by)):
        raise NotAllowed(_("You can add to and remove from only the clusters that you are a member of."))


def replace(user: User, chosen: Collection[int], *, by: User) -> None:
    """Replace the user's clusters by these.

    Raises:
        NotAllowed: `by` neither manages clusters nor is in a cluster that is given or taken.
    """
    owner = clusters.MEMBERSHIPS.get()
    if owner is None:
        return
    changed = set(clusters.ids_for_user(user)) ^ set(chosen)
    check(changed, by=by)
    if changed:
        owner.replace_clusters(user, chosen)
        audit.record(by, "clusters_of_person_changed", user, clusters=sorted(chosen))


def remove(user: User) -> None:
    """Take a person out of all clusters; they stay in those where work of theirs is still ending."""
    owner = clusters.MEMBERSHIPS.get()
    if owner is None:
        return
    for cluster in owner.ids_for_user(user):
        with suppress(DomainError), transaction.atomic():  # work of theirs is still ending there
            owner.replace_clusters(user, [other for other in clusters.ids_for_user(user) if other != cluster])
