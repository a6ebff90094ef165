"""Decisions that wait for a user, from all apps: pipelines, job approvals, run time, registrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.registry import Registry

MAX_ROWS = 5


@dataclass(frozen=True)
class Pending:
    """One decision: what is requested, by whom or of what, where to decide, and since when."""

    title: str
    detail: str
    url: str
    at: datetime | None = None


@dataclass(frozen=True)
class ApprovalSource:
    """Decisions of one kind.

    Attributes:
        name: unique.
        label: for users: "More run time".
        icon: of icons.svg.
        pending: what a user may decide now, oldest first, at most so many rows.
        needs: without this action the source is not read.
    """

    name: str
    label: Any
    icon: str
    pending: Callable[[User, int], Iterable[Pending]]
    needs: Action


SOURCES: Registry[ApprovalSource] = Registry("source of approvals")


def pending_for(user: User) -> dict[str, Any] | None:
    """Return the context of the section: the oldest decisions of each source, or None."""
    rows = [
        {"label": source.label, "icon": source.icon, "row": row}
        for source in SOURCES
        if user.can(source.needs)
        for row in source.pending(user, MAX_ROWS)
    ]
    return {"rows": rows} if rows else None
