"""Cluster memberships of people. The app that owns the clusters registers its functions here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.permissions import Action
from accounts.services import audit
from aiplatform.lib.errors import DomainError, NotAllowed
from aiplatform.lib.registry import Slot

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True)
class Memberships:
    """The functions of the app that owns the clusters."""

    choices: Callable[[], list[tuple[int, str]]]  # all clusters: (id, name)
    of: Callable[[User], list[int]]  # ids of one person's clusters
    put: Callable[[User, Collection[int]], None]  # make these the person's clusters


MEMBERSHIPS: Slot[Memberships] = Slot("room of clusters")

register = MEMBERSHIPS.register  # called once from the owning app's AppConfig.ready()


def choices() -> list[tuple[int, str]]:
    owner = MEMBERSHIPS.get()
    return owner.choices() if owner else []


def of(user: User) -> list[int]:
    owner = MEMBERSHIPS.get()
    return owner.of(user) if owner else []


def check(changed: Collection[int], *, by: User) -> None:
    """Refuse to give or take clusters that `by` neither manages nor is in.

    Raises:
        NotAllowed.
    """
    if changed and not by.can(Action.CLUSTER_MANAGE) and not set(changed) <= set(of(by)):
        raise NotAllowed(_("You can only give and take clusters that you are in yourself."))


def put(user: User, clusters: Collection[int], *, by: User) -> None:
    """Make these the person's clusters.

    Raises:
        NotAllowed: `by` neither manages clusters nor is in a cluster that is given or taken.
    """
    owner = MEMBERSHIPS.get()
    if owner is None:
        return
    changed = set(of(user)) ^ set(clusters)
    check(changed, by=by)
    if changed:
        owner.put(user, clusters)
        audit.record(by, "clusters_of_person_changed", user, clusters=sorted(clusters))


def remove(user: User) -> None:
    """Take a person out of all clusters; they stay in those where work of theirs is still ending."""
    owner = MEMBERSHIPS.get()
    if owner is None:
        return
    for cluster in owner.of(user):
        with suppress(DomainError), transaction.atomic():  # work of theirs is still ending there
            owner.put(user, [other for other in of(user) if other != cluster])
