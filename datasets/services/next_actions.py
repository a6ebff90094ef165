"""Next actions for a version, which other apps offer. They register from `AppConfig.ready()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounts.access.permissions import Action
from aiplatform.lib.registry import Registry

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from accounts.models import User
    from datasets.models import DatasetVersion


@dataclass(frozen=True, slots=True)
class NextAction:
    """A button on the page of a version.

    Args:
        needs: action that the user's roles must allow.
        url: of a form with the version filled in.
        fits: whether the action suits the version; the first one that does is the page's primary action.
        rank: smaller ones come first.
    """

    name: str
    label: StrPromise | str
    icon: str
    needs: Action
    url: Callable[[DatasetVersion], str]
    fits: Callable[[DatasetVersion], bool]
    rank: int


ACTIONS: Registry[NextAction] = Registry("next action for a version", order=lambda action: action.rank)
register = ACTIONS.register


@dataclass(frozen=True, slots=True)
class Offer:
    """An action with its address for one version."""

    name: str
    label: StrPromise | str
    icon: str
    url: str


def offers(version: DatasetVersion, user: User) -> list[Offer]:
    """Return the actions that this version and this user's roles allow, the primary one first."""
    return [
        Offer(action.name, action.label, action.icon, action.url(version))
        for action in ACTIONS
        if user.can(action.needs) and action.fits(version)
    ]
