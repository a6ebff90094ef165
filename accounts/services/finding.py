"""Who is meant: people by a part of their name, groups by name or number."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from accounts import clusters
from accounts.models import User, UserGroup
from accounts.permissions import Action
from accounts.querysets import PeopleQuerySet
from aiplatform.lib import ids


def group(named: int | str, *, among: QuerySet[UserGroup]) -> UserGroup | None:
    """A group by its name, else by its number; None where there is none."""
    words = str(named).strip()
    return among.filter(name=words).first() or among.filter(pk=ids.number(words) or 0).first()


def by_exact_name() -> PeopleQuerySet:
    """Active accounts, for who knows a username already: to share with, to let into a cluster."""
    found: PeopleQuerySet = User.objects.filter(is_active=True, deleted_at=None)
    return found


def known_to(user: User) -> PeopleQuerySet:
    """Active accounts of this person's groups and clusters, and their own.

    Who administers people, or lets people into some cluster, chooses among everybody.
    """
    active = by_exact_name()
    if user.can(Action.PEOPLE_MANAGE) or clusters.chooses_among_all(user):
        return active
    near = Q(pk=user.pk) | Q(pk__in=clusters.mates(user)) | Q(user_groups__in=user.user_groups.values("pk"))
    return active.filter(near).distinct()
