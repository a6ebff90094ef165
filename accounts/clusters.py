"""Which clusters a person belongs to: the room above tells how, as this one knows no clusters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accounts.models import User


@dataclass(frozen=True)
class Memberships:
    """Functions of whoever owns the clusters."""

    choices: Callable[[], list[tuple[int, str]]]  # all clusters: (id, name)
    of: Callable[[User], list[int]]  # ids of one person's clusters
    put: Callable[[User, Collection[int]], None]  # make these the person's clusters


_owner: list[Memberships] = []


def register(memberships: Memberships) -> None:
    """Called once from the owning app's AppConfig.ready()."""
    _owner[:] = [memberships]


def choices() -> list[tuple[int, str]]:
    return _owner[0].choices() if _owner else []


def of(user: User) -> list[int]:
    return _owner[0].of(user) if _owner else []


def put(user: User, clusters: Collection[int]) -> None:
    if _owner:
        _owner[0].put(user, clusters)
