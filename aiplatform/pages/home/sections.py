"""Sections of the home page. Each app registers its own from `AppConfig.ready()`:

sections.SECTIONS.register(
    sections.Section("jobs", "workers/_home_jobs.html", jobs_of, needs=Action.JOBS_VIEW, order=20, live=True)
)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.registry import Registry


@dataclass(frozen=True)
class Section:
    """One section of the home page.

    Attributes:
        key: its id on the page is `home-KEY`.
        template: renders the section, its heading included; gets the context as `data`.
        context: what to show to a user, by a bounded number of queries; None where there is nothing: an empty section
            is not shown.
        needs: without this action the section is not shown and its context is not read.
        order: place in its column.
        column: "top" spans the page; "main" and "side" are beside each other on wide screens.
        live: whether the page refreshes it.
    """

    key: str
    template: str
    context: Callable[[User], Mapping[str, Any] | None]
    needs: Action
    order: int
    column: Literal["top", "main", "side"] = "main"
    live: bool = False


@dataclass(frozen=True)
class ShownSection:
    """A section with its context for one user; `data` is None for an empty one."""

    key: str
    template: str
    column: str
    live: bool
    data: Mapping[str, Any] | None


SECTIONS: Registry[Section] = Registry(
    "section of the home page", name=lambda section: section.key, order=lambda section: (section.order, section.key)
)


def list_sections(user: User, *, live_only: bool = False) -> list[ShownSection]:
    """Return the sections that a user may see, in their order; empty ones included, since a refresh may fill them."""
    return [
        ShownSection(section.key, section.template, section.column, section.live, section.context(user) or None)
        for section in SECTIONS
        if user.can(section.needs) and (section.live or not live_only)
    ]
