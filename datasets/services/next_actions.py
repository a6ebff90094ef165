"""Next actions for a version, which other apps offer. They register from `AppConfig.ready()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
        draft_fields: of a draft, the action comes first and its button sends the form with these values at once.
    """

    name: str
    label: StrPromise | str
    icon: str
    needs: Action
    url: Callable[[DatasetVersion], str]
    fits: Callable[[DatasetVersion], bool]
    rank: int
    draft_fields: Callable[[DatasetVersion], Mapping[str, str]] | None = None


ACTIONS: Registry[NextAction] = Registry("next action for a version", order=lambda action: action.rank)
register = ACTIONS.register


@dataclass(frozen=True, slots=True)
class Offer:
    """An action with its address for one version.

    Attributes:
        fields: values that a button sends to the address; empty for a link.
    """

    name: str
    label: StrPromise | str
    icon: str
    url: str
    fields: Mapping[str, str] = field(default_factory=dict)


def offers(version: DatasetVersion, user: User) -> list[Offer]:
    """Return the actions that this version and this user's roles allow, the primary one first."""
    fitting = [action for action in ACTIONS if user.can(action.needs) and action.fits(version)]
    if version.is_draft:
        fitting.sort(key=lambda action: action.draft_fields is None)
    return [
        Offer(
            action.name,
            action.label,
            action.icon,
            action.url(version),
            action.draft_fields(version) if version.is_draft and action.draft_fields else {},
        )
        for action in fitting
    ]
