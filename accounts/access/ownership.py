"""Ownership: apps register what a person can own, so that it can be counted and handed over.

ownership.register(ownership.Owned("datasets", _("Datasets"), Dataset))     # in AppConfig.ready()
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.db import models

from aiplatform.lib.registry import Registry, Slot

if TYPE_CHECKING:
    from accounts.models import User


class OwnedKind(Protocol):
    """A kind of thing people own."""

    @property
    def key(self) -> str:
        """The word scripts know it by."""

    @property
    def label(self) -> Any:
        """The plural for people, lazily translated."""

    def count(self, user: User) -> int:
        """How many `user` owns."""

    def transfer(self, giver: User, taker: User) -> int:
        """Transfer everything of `giver` to `taker`; returns how many rows moved."""


@dataclass(frozen=True)
class Owned:
    """Rows of a model with an owner and perhaps a name that is unique per owner."""

    key: str
    label: Any
    model: type[models.Model]
    owner: str = "owner"
    named: bool = True

    def _rows(self, user: User) -> models.QuerySet[Any]:
        return self.model._default_manager.filter(**{self.owner: user})

    def count(self, user: User) -> int:
        return self._rows(user).count()

    def transfer(self, giver: User, taker: User) -> int:
        """Transfer the rows; a name that the taker uses already gets the giver's name appended."""
        if self.named:
            taken = set(self._rows(taker).values_list("name", flat=True))
            room = getattr(self.model._meta.get_field("name"), "max_length", None) or 50
            for row in self._rows(giver).filter(name__in=taken):
                row.name = _free(row.name, giver.username, taken, room)
                taken.add(row.name)
                row.save(update_fields=["name"])
        return self._rows(giver).update(**{self.owner: taker})


def _free(name: str, giver: str, taken: set[str], room: int) -> str:
    """`name_giver`, numbered when that is taken as well; letters, digits and _ only behind the name."""
    tail = "_" + "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in giver)[:20]
    for number in range(1, len(taken) + 2):
        end = tail if number == 1 else f"{tail}_{number}"
        if (candidate := name[: room - len(end)] + end) not in taken:
            return candidate
    raise AssertionError("more names than rows")


KINDS: Registry[OwnedKind] = Registry("kind of thing owned", name=lambda kind: kind.key)
#: Register `stop(person, by)`: it ends the person's running and waiting work and returns how many jobs.
WORK: Slot[Callable[[User, User], int]] = Slot("room of work")

register = KINDS.register  # called from the owning app's AppConfig.ready()
register_work = WORK.register


def count_by_kind(user: User) -> list[tuple[OwnedKind, int]]:
    """Return each kind with the number of things `user` owns, in the order of registration."""
    return [(kind, kind.count(user)) for kind in KINDS]


def transfer(giver: User, taker: User) -> dict[str, int]:
    """Transfer everything: key → count. The caller holds the transaction."""
    return {kind.key: kind.transfer(giver, taker) for kind in KINDS}


def stop_work(person: User, by: User) -> int:
    """End the person's running and waiting work."""
    stop = WORK.get()
    return stop(person, by) if stop else 0
