"""Roles and groups. Preset roles stay as they are, custom ones may be changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.access.permissions import ANNOTATION_PERSON, PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from accounts.models import Role, User, UserGroup
from accounts.services import audit, ceiling, people
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals


class LeftWithoutRole(DomainError, code="left_without_role"): ...


class PresetRole(DomainError, code="preset_role", status=403): ...


MAX_NAMED = 5  # in a sentence
PRESET_DESCRIPTIONS = {
    SYSTEM_ADMIN: "Everything, including people and clusters",
    USER: "The whole platform but people and clusters",
    ANNOTATION_PERSON: "Annotate images, nothing else",
}


def update_presets(*, using: str = "default") -> None:
    """Create the preset roles, or update them to the actions of this version."""
    for name, actions in PRESET_ROLES.items():
        fields = {"preset": True, "description": PRESET_DESCRIPTIONS[name], "actions": sorted(a.value for a in actions)}
        Role.objects.using(using).update_or_create(name=name, defaults=fields)


def _actions(names: Iterable[str]) -> list[str]:
    all_actions = {action.value for action in Action}
    wanted = set(names)
    if unknown := sorted(wanted - all_actions):
        raise Invalid(_("There is no action called %(name)s.") % {"name": ", ".join(unknown)}, field="actions")
    return sorted(wanted | {Action.OVERVIEW_VIEW.value, Action.SELF_MANAGE.value})


def _saved(row: Role | UserGroup) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as exc:
        raise _taken(row.name) from exc


def check_role_name(*, name: str = "", role: Role | None = None) -> None:
    """Refuse a name that another role has."""
    _check_free(Role.objects.exclude(pk=role.pk) if role else Role.objects.all(), name)


def check_group_name(*, name: str = "", group: UserGroup | None = None) -> None:
    """Refuse a name that another group has."""
    _check_free(UserGroup.objects.exclude(pk=group.pk) if group else UserGroup.objects.all(), name)


def _check_free(others: QuerySet[Any], name: str) -> None:
    if others.filter(name=name.strip()).exists():
        raise _taken(name.strip())


def _taken(name: str) -> NameTaken:
    return NameTaken(_("The name “%(name)s” is taken.") % {"name": name})


def _allowed(actions: Iterable[str]) -> frozenset[Action]:
    return frozenset(Action(name) for name in actions)


@transaction.atomic
def create(*, name: str, description: str = "", actions: Iterable[str] = (), by: User | None) -> Role:
    """Make a custom role. Every role also allows the overview and the own account.

    Raises:
        BeyondYou: it would allow what `by` may not do.
        NameTaken, Invalid.
    """
    refusals = Refusals()
    with refusals:
        allowed = _actions(actions)
        ceiling.grant(by, _allowed(allowed))
    with refusals:
        check_role_name(name=name)
    refusals.end()
    role = Role(name=name.strip(), description=description.strip(), actions=allowed)
    _saved(role)
    audit.record(by, "role_made", role, actions=role.actions)
    return role


def update(*, role: Role, name: str, description: str, actions: Iterable[str], by: User | None) -> Role:
    """Change a custom role.

    Raises:
        BeyondYou: it allows, or would allow, what `by` may not do.
        PresetRole, NameTaken, Invalid, LastAdministrator.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” came with the platform and stays as it is.") % {"name": role.name})
    before, refusals = role.actions, Refusals()
    with refusals:
        wanted = _actions(actions)
        ceiling.grant(by, role.allows() | _allowed(wanted))
    with refusals:
        check_role_name(name=name, role=role)
    refusals.end()
    with people.keeping_an_administrator():
        role.name, role.description, role.actions = name.strip(), description.strip(), wanted
        _saved(role)
        audit.record(by, "role_changed", role, before=before, after=wanted)
    return role


def delete(*, role: Role, by: User | None) -> None:
    """Delete a custom role; who had it keeps their other roles.

    Raises:
        BeyondYou: it allows what `by` may not do.
        LeftWithoutRole: it is the only one that a group or a person has.
        PresetRole, LastAdministrator.
    """
    if role.preset:
        raise PresetRole(_("“%(name)s” came with the platform and stays.") % {"name": role.name})
    ceiling.grant(by, role.allows())
    with people.keeping_an_administrator():
        if bare := _bare_without(role):
            raise LeftWithoutRole(
                _("“%(role)s” is the only role of %(names)s. Give them another one first.")
                % {"role": role.name, "names": ", ".join(bare[:MAX_NAMED]) + (" …" if bare[MAX_NAMED:] else "")},
                count=len(bare),
            )
        audit.record(by, "role_deleted", role, actions=role.actions, holders=role.users.count())
        role.delete()


def _bare_without(role: Role) -> list[str]:
    """Return the names of the groups, then of the people, who have this role and no other."""
    others = Role.objects.exclude(pk=role.pk)
    by_others = Q(roles__in=others)
    groups = UserGroup.objects.filter(roles=role).exclude(pk__in=UserGroup.objects.filter(by_others).values("pk"))
    with_others = User.objects.filter(by_others | Q(user_groups__roles__in=others))
    persons = User.objects.filter(roles=role).exclude(pk__in=with_others.values("pk"))
    return [*groups.values_list("name", flat=True), *persons.order_by("username").values_list("username", flat=True)]


def attach(*, role: Role, users: Iterable[User], groups: Iterable[UserGroup], by: User | None) -> None:
    """Give the role to exactly these people and groups, next to what else they have.

    Raises:
        BeyondYou: the role, or one of the accounts or groups changed, goes beyond `by`.
        FirstAdministrator, LastAdministrator.
    """
    ceiling.grant(by, role.allows())
    had, has = set(role.users.all()), set(users)
    for person in had ^ has:
        ceiling.touch(by, person)
        ceiling.stays(person)
    changed = set(role.user_groups.all()) ^ set(groups)
    ceiling.grant(by, ceiling.of_groups(changed))
    with people.keeping_an_administrator():
        role.users.set(has)
        role.user_groups.set(groups)
        for group in changed:
            if not group.roles.exists():
                raise Invalid(
                    _("“%(name)s” would be left without a role. Give it another one first.") % {"name": group},
                    field="groups",
                )
        audit.record(
            by,
            "role_changed",
            role,
            added=sorted(p.username for p in has - had),
            removed=sorted(p.username for p in had - has),
            groups=sorted(group.name for group in groups),
        )


@transaction.atomic
def assign(*, role: Role, people: Iterable[User], by: User | None) -> None:
    """Assign the role to further users.

    Raises:
        BeyondYou, FirstAdministrator: see `attach`.
    """
    attach(role=role, users={*role.users.all(), *people}, groups=list(role.user_groups.all()), by=by)


@transaction.atomic
def revoke(*, role: Role, person: User, by: User | None) -> None:
    """Revoke the role of one user; what a group gives them stays.

    Raises:
        BeyondYou, FirstAdministrator, LastAdministrator: see `attach`.
    """
    attach(role=role, users={*role.users.all()} - {person}, groups=list(role.user_groups.all()), by=by)


@transaction.atomic
def create_group(
    *, name: str, description: str, roles: Sequence[Role], members: Iterable[User] = (), by: User | None
) -> UserGroup:
    """Make a group of people who share at least one role.

    Raises:
        BeyondYou: the roles or a member go beyond `by`.
        NameTaken, Invalid.
    """
    _check_group(name, roles, None)
    group = UserGroup(name=name.strip(), description=description.strip())
    _saved(group)
    _set_group(group, roles=roles, members=members, by=by)
    audit.record(by, "group_made", group, **_facts(group))
    return group


def update_group(
    *, group: UserGroup, name: str, description: str, roles: Sequence[Role], members: Iterable[User], by: User | None
) -> UserGroup:
    """Set name, description, roles and members of a group.

    Raises:
        BeyondYou: its roles, old or new, or a member who comes or goes, go beyond `by`.
        FirstAdministrator: the first account joins and leaves no group.
        Invalid: a group without a role has no effect.
        NameTaken, LastAdministrator.
    """
    _check_group(name, roles, group)
    with people.keeping_an_administrator():
        before = _facts(group)
        group.name, group.description = name.strip(), description.strip()
        _saved(group)
        _set_group(group, roles=roles, members=members, by=by)
        audit.record(by, "group_changed", group, before=before, after=_facts(group))
    return group


@transaction.atomic
def add_members(*, group: UserGroup, people: Iterable[User], by: User | None) -> None:
    """Let people join a group.

    Raises:
        BeyondYou, FirstAdministrator: see `update_group`.
    """
    _members(group, {*group.users.all(), *people}, by)


@transaction.atomic
def remove_member(*, group: UserGroup, person: User, by: User | None) -> None:
    """Remove a user from a group.

    Raises:
        BeyondYou, FirstAdministrator, LastAdministrator.
    """
    _members(group, {*group.users.all()} - {person}, by)


def _members(group: UserGroup, members: Iterable[User], by: User | None) -> None:
    roles = list(group.roles.all())
    update_group(group=group, name=group.name, description=group.description, roles=roles, members=members, by=by)


def _check_group(name: str, roles: Sequence[Role], group: UserGroup | None) -> None:
    refusals = Refusals()
    with refusals:
        check_group_name(name=name, group=group)
    with refusals:
        if not roles:
            raise Invalid(_("Choose at least one role."), field="roles")
    refusals.end()


def _set_group(group: UserGroup, *, roles: Sequence[Role], members: Iterable[User], by: User | None) -> None:
    ceiling.grant(by, ceiling.of_groups([group]) | ceiling.of_roles(roles))
    wanted = set(members)
    for person in wanted ^ set(group.users.all()):
        ceiling.touch(by, person)
        ceiling.stays(person)
    group.roles.set(roles)
    group.users.set(wanted)


def _facts(group: UserGroup) -> dict[str, list[str]]:
    return {
        "roles": sorted(group.roles.values_list("name", flat=True)),
        "members": sorted(group.users.values_list("username", flat=True)),
    }


def delete_group(*, group: UserGroup, by: User | None) -> None:
    """Delete a group; its members keep their own roles.

    Raises:
        BeyondYou: the group gives what `by` does not have.
        LastAdministrator.
    """
    ceiling.grant(by, ceiling.of_groups([group]))
    with people.keeping_an_administrator():
        audit.record(by, "group_deleted", group, **_facts(group))
        group.delete()
