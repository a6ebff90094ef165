"""What a new request of a job kind can start from: saved parameters, templates, copies of earlier jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.registry import Registry
from training.programs import request_schemas

MAX_ROWS = 100  # of each source
MAX_COPIES = 10


@dataclass(frozen=True)
class StartingPoint:
    """A row of the menu "Start from": `note` tells equal labels apart."""

    label: str
    note: str
    url: str


@dataclass(frozen=True)
class Source:
    """One group of the menu.

    Args:
        name: stable name; sources are listed in the order of `rank`.
        find: returns at most MAX_ROWS starting points of a job kind that a user may use, newest first.
    """

    name: str
    label: Any
    icon: str
    rank: int
    find: Callable[[User, str], list[StartingPoint]]


@dataclass(frozen=True)
class Group:
    source: Source
    points: list[StartingPoint]


SOURCES: Registry[Source] = Registry("source of requests", order=lambda source: source.rank)


def groups(user: User, kind: str, form_url: str) -> list[Group]:
    """Return the groups of the menu that have rows for this user.

    Args:
        form_url: address of the form, which copies a job by `?clone=`.
    """
    copies = Source("copies", _("Copy of a job"), "clone", 90, lambda user, kind: _copies(user, kind, form_url))
    rows = [Group(source, source.find(user, kind)) for source in (*SOURCES, copies)]
    return [group for group in rows if group.points]


def _copies(user: User, kind: str, form_url: str) -> list[StartingPoint]:
    """Return the user's newest jobs of a kind."""
    rows = request_schemas.get(kind).copies(user).select_related("job").order_by("-pk")[:MAX_COPIES]
    return [StartingPoint(row.job.name, f"#{row.job_id}", f"{form_url}?clone={row.pk}") for row in rows]
