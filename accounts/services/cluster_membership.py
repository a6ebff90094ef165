"""Giving people clusters and taking them away."""

from __future__ import annotations

from collections.abc import Collection

from django.utils.translation import gettext as _

from accounts.access import clusters
from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import NotAllowed


def choices(by: User) -> list[tuple[int, str]]:
    """Return the clusters that `by` can add users to: (id, name)."""
    every = clusters.choices()
    if by.can(Action.CLUSTER_MANAGE):
        return every
    own = set(clusters.ids_for_user(by))
    return [(pk, name) for pk, name in every if pk in own]


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
        owner.replace_clusters(user, chosen, by)  # records each cluster that is given or taken


def remove(user: User, *, by: User | None) -> None:
    """Take a person out of all clusters; they stay in those where work of theirs is still ending."""
    if (owner := clusters.MEMBERSHIPS.get()) is not None:
        owner.leave_all(user, by)
