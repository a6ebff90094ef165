"""Which clusters a person belongs to: the room above tells how, as this one knows no clusters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from accounts.permissions import Action
from accounts.services import audit
from aiplatform.lib.errors import NotAllowed

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


def put(user: User, clusters: Collection[int], *, by: User) -> None:
    """Make these the person's clusters.

    Raises:
        NotAllowed: `by` neither manages clusters nor is in a cluster that is given or taken.
    """
    if not _owner:
        return
    changed = set(of(user)) ^ set(clusters)
    if changed and not by.can(Action.CLUSTER_MANAGE) and not changed <= set(of(by)):
        raise NotAllowed(_("You can only give and take clusters that you are in yourself."))
    if changed:
        _owner[0].put(user, clusters)
        audit.record(by, "clusters_of_person_changed", user, clusters=sorted(clusters))
