"""Create, change, delete and assign roles and groups. Preset roles cannot be changed or deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from accounts.models import Role, User, UserGroup
from accounts.services import audit, ceiling, people
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals


class LeftWithoutRole(DomainError, code="left_without_role"):
    """A user or group would have no role left."""


class PresetRole(DomainError, code="preset_role", status=403):
    """A preset role cannot be changed or deleted."""


MAX_LISTED_NAMES = 5  # in an error message; further ones are shown as "…"
PRESET_DESCRIPTIONS = {
    SYSTEM_ADMIN: "Full access, including users and clusters",
    USER: "All features except users and clusters",
    ANNOTATOR: "Annotate images only",
}


def update_presets(*, using: str = "default") -> None:
    """Create the preset roles, or set their descriptions and actions to those of this release.

    Args:
        using: alias of the database.
    """
    for name, actions in PRESET_ROLES.items():
        fields = {"preset": True, "description": PRESET_DESCRIPTIONS[name], "actions": sorted(a.value for a in actions)}
        Role.objects.using(using).update_or_create(name=name, defaults=fields)


def _validate_actions(names: Iterable[str]) -> list[str]:
    """Return the sorted names, with the actions that every role allows added; reject unknown names."""
    all_actions = {action.value for action in Action}
    requested = set(names)
    if unknown := sorted(requested - all_actions):
        raise Invalid(_("Unknown action %(name)s.") % {"name": ", ".join(unknown)}, field="actions")
    return sorted(requested | {Action.OVERVIEW_VIEW.value, Action.SELF_MANAGE.value})


def _save(row: Role | UserGroup) -> None:
    """Save a row; a concurrent creation with the same name raises NameTaken."""
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as exc:
        raise _name_taken(row.name) from exc


def check_role_name(*, name: str = "", role: Role | None = None) -> None:
    """Raise NameTaken if another role has this name; `role` is the one being changed."""
    _check_name_free(Role.objects.exclude(pk=role.pk) if role else Role.objects.all(), name)


def check_group_name(*, name: str = "", group: UserGroup | None = None) -> None:
    """Raise NameTaken if another group has this name; `group` is the one being changed."""
    _check_name_free(UserGroup.objects.exclude(pk=group.pk) if group else UserGroup.objects.all(), name)


def _check_name_free(others: QuerySet[Any], name: str) -> None:
    if others.filter(name=name.strip()).exists():
        raise _name_taken(name.strip())


def _name_taken(name: str) -> NameTaken:
    return NameTaken(_("The name “%(name)s” is already in use.") % {"name": name})


def _to_actions(names: Iterable[str]) -> frozenset[Action]:
    return frozenset(Action(name) for name in names)


@transaction.atomic
def create(*, name: str, description: str = "", actions: Iterable[str] = (), by: User | None) -> Role:
    """Create a custom role. Every role also allows viewing the home page and managing one's own account.

    Args:
        actions: values of `Action`.
        by: the caller, here and below; None is the platform itself, which has all rights.

    Raises:
        BeyondYou: the role would allow actions that `by` does not have.
        NameTaken: another role has this name.
        Invalid: an action is unknown.
    """
    refusals = Refusals()
    with refusals:
        action_names = _validate_actions(actions)
        ceiling.grant(by, _to_actions(action_names))
    with refusals:
        check_role_name(name=name)
    refusals.end()
    role = Role(name=name.strip(), description=description.strip(), actions=action_names)
    _save(role)
    audit.record(by, "role_made", role, actions=role.actions)
    return role


def update(*, role: Role, name: str, description: str, actions: Iterable[str], by: User | None) -> Role:
    """Change a custom role.

    Raises:
        BeyondYou: the role allows, or would allow, actions that `by` does not have.
        PresetRole: the role is a preset one.
        NameTaken: another role has this name.
        Invalid: an action is unknown.
        LastAdministrator: no active administrator would be left.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” is built in and cannot be changed.") % {"name": role.name})
    before, refusals = role.actions, Refusals()
    with refusals:
        action_names = _validate_actions(actions)
        ceiling.grant(by, role.allows() | _to_actions(action_names))
    with refusals:
        check_role_name(name=name, role=role)
    refusals.end()
    with people.keeping_an_administrator():
        role.name, role.description, role.actions = name.strip(), description.strip(), action_names
        _save(role)
        audit.record(by, "role_changed", role, before=before, after=action_names)
    return role


def delete(*, role: Role, by: User | None) -> None:
    """Delete a custom role; its holders keep their other roles.

    Raises:
        BeyondYou: the role allows actions that `by` does not have.
        LeftWithoutRole: it is the only role of a group or user.
        PresetRole: the role is a preset one.
        LastAdministrator: no active administrator would be left.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” is built in and cannot be deleted.") % {"name": role.name})
    ceiling.grant(by, role.allows())
    with people.keeping_an_administrator():
        if holders := _holders_without_other_role(role):
            raise LeftWithoutRole(
                _("“%(role)s” is the only role of %(names)s. Assign another role first.")
                % {
                    "role": role.name,
                    "names": ", ".join(holders[:MAX_LISTED_NAMES]) + (" …" if holders[MAX_LISTED_NAMES:] else ""),
                },
                count=len(holders),
            )
        audit.record(by, "role_deleted", role, actions=role.actions, holders=role.users.count())
        role.delete()


def _holders_without_other_role(role: Role) -> list[str]:
    """Return the names of the groups, then of the users, that have this role and no other."""
    others = Role.objects.exclude(pk=role.pk)
    has_other = Q(roles__in=others)
    groups = UserGroup.objects.filter(roles=role).exclude(pk__in=UserGroup.objects.filter(has_other).values("pk"))
    with_others = User.objects.filter(has_other | Q(user_groups__roles__in=others))
    users = User.objects.filter(roles=role).exclude(pk__in=with_others.values("pk"))
    return [*groups.values_list("name", flat=True), *users.order_by("username").values_list("username", flat=True)]


def set_holders(*, role: Role, users: Iterable[User], groups: Iterable[UserGroup], by: User | None) -> None:
    """Assign the role to exactly these users and groups and revoke it from all others; other roles are unaffected.

    Raises:
        BeyondYou: the role, or a user or group that gains or loses it, has actions that `by` does not have.
        FirstAdministrator: the first administrator's account would gain or lose the role.
        LastAdministrator: no active administrator would be left.
        Invalid: a group would be left without a role.
    """
    ceiling.grant(by, role.allows())
    users_before, users_after = set(role.users.all()), set(users)
    for user in users_before ^ users_after:
        ceiling.touch(by, user)
        ceiling.stays(user)
    changed_groups = set(role.user_groups.all()) ^ set(groups)
    ceiling.grant(by, ceiling.of_groups(changed_groups))
    with people.keeping_an_administrator():
        role.users.set(users_after)
        role.user_groups.set(groups)
        for group in changed_groups:
            if not group.roles.exists():
                raise Invalid(
                    _("“%(name)s” would have no role. Assign another role first.") % {"name": group},
                    field="groups",
                )
        audit.record(
            by,
            "role_changed",
            role,
            added=sorted(user.username for user in users_after - users_before),
            removed=sorted(user.username for user in users_before - users_after),
            groups=sorted(group.name for group in groups),
        )


@transaction.atomic
def assign(*, role: Role, people: Iterable[User], by: User | None) -> None:
    """Assign the role to further users.

    Raises:
        BeyondYou, FirstAdministrator: see `set_holders`.
    """
    set_holders(role=role, users={*role.users.all(), *people}, groups=list(role.user_groups.all()), by=by)


@transaction.atomic
def revoke(*, role: Role, person: User, by: User | None) -> None:
    """Revoke the role from one user, who may still have it through a group.

    Raises:
        BeyondYou, FirstAdministrator, LastAdministrator: see `set_holders`.
    """
    set_holders(role=role, users={*role.users.all()} - {person}, groups=list(role.user_groups.all()), by=by)


@transaction.atomic
def create_group(
    *, name: str, description: str, roles: Sequence[Role], members: Iterable[User] = (), by: User | None
) -> UserGroup:
    """Create a group; its members have all of its roles.

    Raises:
        BeyondYou: the roles or a member have actions that `by` does not have.
        FirstAdministrator: the first administrator cannot join a group.
        NameTaken: another group has this name.
        Invalid: `roles` is empty.
    """
    _check_group(name, roles, None)
    group = UserGroup(name=name.strip(), description=description.strip())
    _save(group)
    _set_group(group, roles=roles, members=members, by=by)
    audit.record(by, "group_made", group, **_audit_facts(group))
    return group


def update_group(
    *, group: UserGroup, name: str, description: str, roles: Sequence[Role], members: Iterable[User], by: User | None
) -> UserGroup:
    """Set name, description, roles and members of a group.

    Raises:
        BeyondYou: the old or new roles, or a member who is added or removed, have actions that `by` does not have.
        FirstAdministrator: the first administrator cannot join or leave a group.
        NameTaken: another group has this name.
        Invalid: `roles` is empty.
        LastAdministrator: no active administrator would be left.
    """
    _check_group(name, roles, group)
    with people.keeping_an_administrator():
        before = _audit_facts(group)
        group.name, group.description = name.strip(), description.strip()
        _save(group)
        _set_group(group, roles=roles, members=members, by=by)
        audit.record(by, "group_changed", group, before=before, after=_audit_facts(group))
    return group


@transaction.atomic
def add_members(*, group: UserGroup, people: Iterable[User], by: User | None) -> None:
    """Add users to a group.

    Raises:
        BeyondYou, FirstAdministrator: see `update_group`.
    """
    _set_members(group, {*group.users.all(), *people}, by)


@transaction.atomic
def remove_member(*, group: UserGroup, person: User, by: User | None) -> None:
    """Remove a user from a group.

    Raises:
        BeyondYou, FirstAdministrator, LastAdministrator: see `update_group`.
    """
    _set_members(group, {*group.users.all()} - {person}, by)


def _set_members(group: UserGroup, members: Iterable[User], by: User | None) -> None:
    roles = list(group.roles.all())
    update_group(group=group, name=group.name, description=group.description, roles=roles, members=members, by=by)


def _check_group(name: str, roles: Sequence[Role], group: UserGroup | None) -> None:
    """Check name and roles together, so that the caller gets both errors at once."""
    refusals = Refusals()
    with refusals:
        check_group_name(name=name, group=group)
    with refusals:
        if not roles:
            raise Invalid(_("Choose at least one role."), field="roles")
    refusals.end()


def _set_group(group: UserGroup, *, roles: Sequence[Role], members: Iterable[User], by: User | None) -> None:
    ceiling.grant(by, ceiling.of_groups([group]) | ceiling.of_roles(roles))
    new_members = set(members)
    for person in new_members ^ set(group.users.all()):
        ceiling.touch(by, person)
        ceiling.stays(person)
    group.roles.set(roles)
    group.users.set(new_members)


def _audit_facts(group: UserGroup) -> dict[str, list[str]]:
    return {
        "roles": sorted(group.roles.values_list("name", flat=True)),
        "members": sorted(group.users.values_list("username", flat=True)),
    }


def delete_group(*, group: UserGroup, by: User | None) -> None:
    """Delete a group; its members keep their own roles.

    Raises:
        BeyondYou: the roles of the group allow actions that `by` does not have.
        LastAdministrator: no active administrator would be left.
    """
    ceiling.grant(by, ceiling.of_groups([group]))
    with people.keeping_an_administrator():
        audit.record(by, "group_deleted", group, **_audit_facts(group))
        group.delete()
