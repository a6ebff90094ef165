"""Ways on from a version: what apps above offer to do with it. They register from `AppConfig.ready()`."""

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
class Way:
    """A button on the page of a version.

    Args:
        needs: what the person's roles must allow.
        url: of a form that has the version filled in.
        fits: whether the version can go this way; the first way that fits is the page's primary act.
        rank: smaller ones stand first.
    """

    name: str
    label: StrPromise | str
    icon: str
    needs: Action
    url: Callable[[DatasetVersion], str]
    fits: Callable[[DatasetVersion], bool]
    rank: int


WAYS: Registry[Way] = Registry("way on from a version", order=lambda way: way.rank)
register = WAYS.register


@dataclass(frozen=True, slots=True)
class Offer:
    """A way with its address for one version."""

    name: str
    label: StrPromise | str
    icon: str
    url: str


def offers(version: DatasetVersion, user: User) -> list[Offer]:
    """The ways this version can go and this person may take, the primary one first."""
    return [
        Offer(way.name, way.label, way.icon, way.url(version))
        for way in WAYS
        if user.can(way.needs) and way.fits(version)
    ]
