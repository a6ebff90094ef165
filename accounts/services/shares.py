"""Share a thing with a person or a group, and take it back."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext as _

from accounts.access import sharing
from accounts.models import User, UserGroup
from accounts.services import audit, finding
from aiplatform.lib.errors import Invalid, NotFound


class WrongLevel(Invalid, code="wrong_level", field="level"): ...


def find(kind: str, pk: int, *, by: User) -> tuple[sharing.Shareable, Any]:
    """Return a thing `by` may share: their own, one they manage, and for operators any.

    Raises:
        NotFound: it does not exist, or belongs to another user; the message is the same.
        NotAllowed: no role allows changing things of this kind.
    """
    shareable = sharing.KINDS.find(kind)
    if shareable is None:
        raise NotFound(_("Not found."))
    by.require(shareable.needs)
    thing = shareable.model._default_manager.editable_by(by).filter(pk=pk).first()  # type: ignore[attr-defined]  # every shared model has our queryset
    if thing is None:
        raise NotFound(_("Not found."))
    return shareable, thing


def _whom(person: str, group: int | str | None, by: User) -> User | UserGroup:
    if person:
        user = User.objects.filter(username=person.strip(), is_active=True).first()
        if user is None:
            raise Invalid(_("No user has this username."), field="person")
        return user
    team = finding.group(group or 0, among=groups_of(by))
    if team is None:
        raise Invalid(_("Enter a user, or choose a group."), field="person")
    return team


def groups_of(by: User) -> Any:
    """Return groups a person may share with: their own; for administrators of people all."""
    return UserGroup.objects.all() if UserGroup.objects.visible_to(by).exists() else UserGroup.objects.filter(users=by)


@transaction.atomic
def share(*, kind: str, pk: int, level: str, by: User, person: str = "", group: int | str | None = None) -> Any:
    """Give a user or a group a level on one thing, in place of the level they had.

    Args:
        person: username; empty: the group.
        group: id or name of a group `by` is in (administrators: of any).

    Raises:
        NotFound, NotAllowed: see `find`.
        Invalid, WrongLevel: an unknown name, or a level this kind does not have.
        DomainError: this one must not be shared; says why.
    """
    shareable, thing = find(kind, pk, by=by)
    if level not in shareable.levels:
        raise WrongLevel(_("Choose one of the available levels."))
    shareable.check(thing)
    whom = _whom(person, group, by)
    if whom == getattr(thing, "owner", None):
        raise Invalid(_("This is the owner, who already has full access."), field="person")
    sharing.set_level(thing, whom, level)
    audit.record(by, "shared", thing, **_facts(whom), level=level)
    return thing


@transaction.atomic
def unshare(*, kind: str, pk: int, by: User, person: str = "", group: int | str | None = None) -> Any:
    """Take back what was shared; nothing happens where nothing was.

    Raises:
        NotFound, NotAllowed: see `find`.
    """
    _known, thing = find(kind, pk, by=by)
    team = finding.group(group or 0, among=UserGroup.objects.all())
    for level, whom in sharing.shares_of(thing):
        named = whom.username == person if isinstance(whom, User) else not person and whom == team
        if named:
            sharing.set_level(thing, whom, None)
            audit.record(by, "unshared", thing, **_facts(whom), level=level)
    return thing


def _facts(whom: User | UserGroup) -> dict[str, str]:
    return {"person": whom.username} if isinstance(whom, User) else {"group": whom.name}


def usable(user: User, thing: Model) -> bool:
    """Whether this person may use the thing (train, evaluate, annotate, serve), not only look at it."""
    return bool(type(thing)._default_manager.usable_by(user).filter(pk=thing.pk).exists())  # type: ignore[attr-defined]  # every shared model has our queryset
