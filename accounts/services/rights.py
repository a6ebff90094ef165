"""Effective rights of a person, and which role or group each comes from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from accounts.access.permissions import ACTION_LABELS, Action, grouped_actions
from accounts.models import User


@dataclass
class Right:
    """One action a person may do."""

    action: Action
    label: Any
    sources: list[str] = field(default_factory=list)  # "User", "System Admin by group ops"


def grouped(rights: Iterable[Right]) -> list[tuple[Any, list[Right]]]:
    """Return rights by the groups of their actions, each with its label."""
    by_action = {right.action: right for right in rights}
    return [(label, [by_action[action] for action in own]) for label, own in grouped_actions(by_action)]


def effective(person: User) -> list[Right]:
    """List all rights of the account in the order of `Action`; of a disabled one those it would have."""
    rights: dict[Action, Right] = {}

    def add(action: Action, source: str) -> None:
        rights.setdefault(action, Right(action, ACTION_LABELS[action])).sources.append(source)

    if person.is_superuser:
        for action in Action:
            add(action, _("superuser"))
    for role in person.roles.all():
        for action in role.allows():
            add(action, role.label)
    for group in person.user_groups.prefetch_related("roles"):
        for role in group.roles.all():
            for action in role.allows():
                add(action, _("%(role)s through group %(group)s") % {"role": role.label, "group": group.name})
    return [rights[action] for action in Action if action in rights]
