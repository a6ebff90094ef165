"""Who is meant: people by a part of their name, groups by name or number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from accounts.access import clusters
from accounts.access.permissions import FORMER_ROLE_NAMES, Action
from accounts.access.querysets import PeopleQuerySet
from accounts.models import Role, User, UserGroup
from aiplatform.lib import ids
from aiplatform.lib.registry import Registry


@dataclass(frozen=True)
class Company:
    """A kind of work that people do together, by which they find each other."""

    name: str
    ids: Callable[[User], QuerySet[Any]]  # ids of the people one works with


COMPANIES: Registry[Company] = Registry("kind of company")
register = COMPANIES.register  # other apps call it from AppConfig.ready()


def group(named: int | str, *, among: QuerySet[UserGroup]) -> UserGroup | None:
    """Return a group by its name, else by its number; None if there is none."""
    text = str(named).strip()
    return among.filter(name=text).first() or among.filter(pk=ids.number(text) or 0).first()


def roles_by_name(by: User) -> dict[str, Role]:
    """Return the roles that `by` sees by their names, preset roles by their former names as well."""
    roles = {role.name: role for role in Role.objects.visible_to(by)}
    return {old: roles[new] for old, new in FORMER_ROLE_NAMES.items() if new in roles} | roles


def by_exact_name() -> PeopleQuerySet:
    """Return active accounts, for callers that know a username already: to share with, to add to a cluster."""
    rows: PeopleQuerySet = User.objects.filter(is_active=True, deleted_at=None)
    return rows


def known_to(user: User) -> PeopleQuerySet:
    """Active accounts of this person's groups and clusters, of whom they work with, and their own.

    Who administers people, or lets people into some cluster, chooses among everybody.
    """
    active = by_exact_name()
    if user.can(Action.PEOPLE_MANAGE) or clusters.chooses_among_all(user):
        return active
    near = Q(pk=user.pk) | Q(pk__in=clusters.mates(user)) | Q(user_groups__in=user.user_groups.values("pk"))
    for company in COMPANIES:
        near |= Q(pk__in=company.ids(user))
    return active.filter(near).distinct()
