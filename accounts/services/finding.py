"""Whom a person finds by a part of the name: the field that names people asks here."""

from __future__ import annotations

from django.db.models import Q

from accounts import clusters
from accounts.models import User
from accounts.permissions import Action
from accounts.querysets import PeopleQuerySet


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
