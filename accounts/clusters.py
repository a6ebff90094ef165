"""Cluster memberships of people. The app that owns the clusters registers its functions here."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
