"""Limits of delegation: users cannot give, change or take over more rights than they have."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from accounts.access.permissions import EVERYONE, Action
from accounts.models import Role, User, UserGroup
from aiplatform.lib.errors import NotAllowed


class BeyondYou(NotAllowed, code="beyond_you"):
    """The caller's own rights do not suffice."""


class FirstAdministrator(NotAllowed, code="first_administrator"):
    """The first administrator's account cannot be changed by others."""


def covers(by: User | None, actions: Iterable[Action]) -> bool:
    """Whether `by` may do all of `actions`; None is the platform itself."""
    return by is None or frozenset(actions) <= by.actions() | EVERYONE


def _excess(by: User, actions: Iterable[Action]) -> list[str]:
    return sorted(action.value for action in frozenset(actions) - by.actions() - EVERYONE)


def of_roles(roles: Iterable[Role]) -> frozenset[Action]:
    """Return every action that any of `roles` allows."""
    return frozenset().union(*(role.allows() for role in roles))


def of_groups(groups: Iterable[UserGroup]) -> frozenset[Action]:
    """Return every action that any of `groups` gives its members."""
    return of_roles(role for group in groups for role in group.roles.all())


def grant(by: User | None, actions: Iterable[Action]) -> None:
    """Refuse to give more than `by` has.

    Raises:
        BeyondYou: naming what is missing in its facts.
    """
    if by is not None and (excess := _excess(by, actions)):
        raise BeyondYou(
            _("This grants permissions that you do not have. Ask an administrator who has them."), lacks=excess
        )


def touch(by: User | None, person: User) -> None:
    """Refuse to change an account that may do more than `by`, also while it is disabled.

    Raises:
        BeyondYou: naming what is missing in its facts.
    """
    if by is None or by.pk == person.pk:
        return
    if excess := _excess(by, person.granted()):
        raise BeyondYou(
            _("%(name)s has more permissions than you. Ask an administrator who has these permissions.")
            % {"name": person},
            lacks=excess,
        )


def stays(person: User) -> None:
    """Refuse what would change the first administrator's account.

    Raises:
        FirstAdministrator: always for that account.
    """
    if person.first:
        raise FirstAdministrator(
            _(
                "%(name)s is the first administrator: the account keeps its permissions, and only its owner "
                "can change other settings."
            )
            % {"name": person}
        )
