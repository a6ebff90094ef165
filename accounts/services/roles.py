"""Roles and groups: preset roles stay as they came, custom ones are free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import Role, User, UserGroup
from accounts.permissions import ANNOTATION_PERSON, PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from accounts.services import people
from aiplatform.lib.errors import DomainError, Invalid


class NameTaken(DomainError):
    code = "name_taken"
    field = "name"


class PresetRole(DomainError):
    code = "preset_role"
    status = 403


PRESET_DESCRIPTIONS = {
    SYSTEM_ADMIN: "Everything, including people and clusters",
    USER: "The whole platform but people and clusters",
    ANNOTATION_PERSON: "Annotate images, nothing else",
}


def keep_presets(*, using: str = "default") -> None:
    """Make the preset roles, or bring them up to date with the actions of this version."""
    for name, actions in PRESET_ROLES.items():
        given = {"preset": True, "description": PRESET_DESCRIPTIONS[name], "actions": sorted(a.value for a in actions)}
        Role.objects.using(using).update_or_create(name=name, defaults=given)


def _actions(asked: Iterable[str]) -> list[str]:
    known = {action.value for action in Action}
    wanted = set(asked)
    if unknown := sorted(wanted - known):
        raise Invalid(_("There is no action called %(name)s.") % {"name": unknown[0]}, field="actions")
    return sorted(wanted | {Action.OVERVIEW_VIEW.value, Action.SELF_MANAGE.value})


def _saved(row: Role | UserGroup) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as exc:
        raise NameTaken(_("The name “%(name)s” is taken.") % {"name": row.name}) from exc


def create(*, name: str, description: str = "", actions: Iterable[str] = ()) -> Role:
    """Make a custom role. Everyone with a role may see the overview and manage their own account.

    Raises:
        NameTaken, Invalid.
    """
    role = Role(name=name.strip(), description=description.strip(), actions=_actions(actions))
    _saved(role)
    return role


def update(*, role: Role, name: str, description: str, actions: Iterable[str]) -> Role:
    """Change a custom role.

    Raises:
        PresetRole, NameTaken, Invalid, LastAdministrator.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” came with the platform and stays as it is.") % {"name": role.name})
    with people.keeping_an_administrator():
        role.name, role.description, role.actions = name.strip(), description.strip(), _actions(actions)
        _saved(role)
    return role


def delete(*, role: Role) -> None:
    """Delete a custom role; who had it keeps their other roles.

    Raises:
        PresetRole, LastAdministrator.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” came with the platform and stays.") % {"name": role.name})
    with people.keeping_an_administrator():
        role.delete()


@transaction.atomic
def create_group(*, name: str, description: str, roles: Sequence[Role], members: Iterable[User] = ()) -> UserGroup:
    """Make a group of people who share at least one role.

    Raises:
        NameTaken, Invalid.
    """
    group = UserGroup(name=name.strip(), description=description.strip())
    _saved(group)
    return update_group(group=group, name=name, description=description, roles=roles, members=members)


def update_group(
    *, group: UserGroup, name: str, description: str, roles: Sequence[Role], members: Iterable[User]
) -> UserGroup:
    """Set name, description, roles and members of a group.

    Raises:
        Invalid: a group without a role gives nobody anything.
        NameTaken, LastAdministrator.
    """
    if not roles:
        raise Invalid(_("Choose at least one role."), field="roles")
    with people.keeping_an_administrator():
        group.name, group.description = name.strip(), description.strip()
        _saved(group)
        group.roles.set(roles)
        group.users.set(members)
    return group


def delete_group(*, group: UserGroup) -> None:
    """Delete a group; its members keep their own roles.

    Raises:
        LastAdministrator.
    """
    with people.keeping_an_administrator():
        group.delete()
