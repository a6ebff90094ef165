"""Cluster memberships of people. The app that owns the clusters registers its functions here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiplatform.lib.registry import Slot

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.models import User


@dataclass(frozen=True)
class Memberships:
    """The functions of the app that owns the clusters."""

    choices: Callable[[], list[tuple[int, str]]]  # all clusters: (id, name)
    ids_for_user: Callable[[User], list[int]]  # ids of one person's clusters
    replace_clusters: Callable[[User, Collection[int], User | None], None]  # make these the user's; by whom
    leave_all: Callable[[User, User | None], None]  # take the user out of every cluster; by whom
    mates: Callable[[User], QuerySet[Any]]  # ids of the people of one's clusters
    chooses_among_all: Callable[[User], bool]  # lets people into clusters, so finds all accounts


MEMBERSHIPS: Slot[Memberships] = Slot("room of clusters")

register = MEMBERSHIPS.register  # called once from the owning app's AppConfig.ready()


def choices() -> list[tuple[int, str]]:
    owner = MEMBERSHIPS.get()
    return owner.choices() if owner else []


def ids_for_user(user: User) -> list[int]:
    owner = MEMBERSHIPS.get()
    return owner.ids_for_user(user) if owner else []


def mates(user: User) -> QuerySet[Any] | list[int]:
    """Ids of the people who share a cluster with `user`."""
    owner = MEMBERSHIPS.get()
    return owner.mates(user) if owner else []


def chooses_among_all(user: User) -> bool:
    """Whether `user` lets people into some cluster."""
    owner = MEMBERSHIPS.get()
    return owner.chooses_among_all(user) if owner else False
