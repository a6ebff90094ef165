"""Accounts: made by an administrator or by registration, given rights, switched on and off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.access.permissions import SYSTEM_ADMIN
from accounts.models import Role, User, UserGroup
from accounts.services import audit, ceiling, passwords, sessions
from aiplatform.lib.errors import DomainError, Invalid, Refusals


class UsernameTaken(DomainError, code="username_taken", field="username"): ...


class LastAdministrator(DomainError, code="last_administrator"): ...


class NotYourself(DomainError, code="not_yourself"): ...


def _clean(user: User, *but: str) -> None:
    try:
        user.full_clean(exclude=["password", *but], validate_unique=False, validate_constraints=False)
    except ValidationError as exc:
        refusals = Refusals()
        for field, messages in exc.message_dict.items():
            with refusals:
                raise Invalid(" ".join(messages), field=field) from exc
        refusals.end()


@transaction.atomic
def create(
    *,
    username: str,
    password: str | None,
    password_hash: str = "",
    nickname: str = "",
    phone: str = "",
    email: str = "",
    roles: Sequence[Role] = (),
    groups: Sequence[UserGroup] = (),
    must_change_password: bool = True,
    first: bool = False,
    awaiting: bool = False,
    by: User | None,
) -> User:
    """Make an account.

    Args:
        nickname: empty: the username.
        password: None: none at all; the person signs in through an identity provider.
        password_hash: hash of `password`, which takes 0.2 s of a CPU; for callers that create several accounts in one
            transaction and hash before it.
        roles: empty: the account waits for rights.
        awaiting: the account cannot sign in before an administrator enables it.
        first: this is the first administrator.
        by: who makes it; None is the platform itself (the console's link, a person who registers).
        must_change_password: the first password is known to another person than the account's user.

    Raises:
        UsernameTaken, Invalid, WeakPassword: nothing was made.
        BeyondYou: the roles or groups give more than `by` has.
    """
    ceiling.grant(by, ceiling.of_roles(roles) | ceiling.of_groups(groups))
    user = User(
        username=User.normalize_username(username.strip()),
        nickname=nickname.strip() or username.strip()[:50],
        phone=phone.strip(),
        email=email.strip(),
        must_change_password=must_change_password,
        first=first,
        awaiting=awaiting,
        is_active=not awaiting,
    )
    refusals = Refusals()
    with refusals:
        _clean(user)
    with refusals:
        if password is not None:
            passwords.check(password, user)
    with refusals:
        check_free(username=user.username)
    refusals.end()
    user.password = password_hash or make_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as exc:
        raise UsernameTaken(_("The name “%(name)s” is already in use.") % {"name": user.username}) from exc
    user.roles.set(roles)
    user.user_groups.set(groups)
    if by is not None or first:
        audit.record(by, "account_made", user, **_rights(user))
    return user


def check_free(*, username: str = "") -> None:
    """Raise an error for a username that is taken."""
    if User.objects.filter(username__iexact=username.strip()).exists():
        raise UsernameTaken(_("The name “%(name)s” is already in use.") % {"name": username.strip()})


def _rights(user: User) -> dict[str, list[str]]:
    """Return the names of roles and groups, for the trail."""
    return {
        "roles": sorted(user.roles.values_list("name", flat=True)),
        "groups": sorted(user.user_groups.values_list("name", flat=True)),
    }


def register(*, username: str, nickname: str, password: str, awaiting: bool = False) -> None:
    """Record a request for an account; it has no rights until an administrator gives it some.

    Says nothing about whether the name was free: the same work is done and the same answer given.

    Raises:
        Invalid, WeakPassword: the values cannot be an account, whichever names are taken.
    """
    try:
        person = create(
            username=username,
            nickname=nickname,
            password=password,
            must_change_password=False,
            awaiting=awaiting,
            by=None,
        )
        audit.record(person, "registered", person)
    except DomainError as exc:
        refusals = Refusals()
        refusals.all = [refusal for refusal in exc.every if not isinstance(refusal, UsernameTaken)]  # not revealed
        refusals.end()
        make_password(password)  # a taken name takes as long as a free one


@transaction.atomic
def update(*, user: User, by: User | None, **values: str) -> User:
    """Change nickname, phone or email.

    Raises:
        Invalid: naming the field.
        BeyondYou, FirstAdministrator: another user's account that `by` may not change.
    """
    before = {field: getattr(user, field) for field in ("nickname", "phone", "email")}
    if by is not None and by.pk != user.pk:
        ceiling.touch(by, user)
        ceiling.stays(user)
    for field in ("nickname", "phone", "email"):
        if field in values:
            setattr(user, field, values[field].strip())
    _clean(user, "username")
    user.save(update_fields=["nickname", "phone", "email"])
    if changed := sorted(field for field, value in before.items() if getattr(user, field) != value):
        audit.record(by, "account_changed", user, fields=changed)
    return user


@contextmanager
def keeping_an_administrator() -> Iterator[None]:
    """Roll the block back when it would leave no active person who can administer people.

    One such block at a time: of two administrators who take each other's rights, the second sees what the first did.
    """
    with transaction.atomic():
        list(Role.objects.select_for_update().filter(name=SYSTEM_ADMIN).values_list("pk"))
        before = User.objects.administrators().exists()
        yield
        if before and not User.objects.administrators().exists():
            raise LastAdministrator(_("At least one administrator is required. Assign the role to another user first."))


def set_rights(*, user: User, roles: Iterable[Role], groups: Iterable[UserGroup], by: User | None) -> None:
    """Give `user` exactly these roles and groups; effective with their next request.

    Raises:
        BeyondYou: the account may do more than `by`, or would get more than `by` has.
        FirstAdministrator: the roles of the first account stay.
        LastAdministrator: no user would be left who can administer users.
    """
    roles, groups = list(roles), list(groups)
    before = _rights(user)
    if before == {"roles": sorted(r.name for r in roles), "groups": sorted(g.name for g in groups)}:
        return
    ceiling.touch(by, user)
    ceiling.stays(user)
    ceiling.grant(by, ceiling.of_roles(roles) | ceiling.of_groups(groups))
    with keeping_an_administrator():
        user.roles.set(roles)
        user.user_groups.set(groups)
        audit.record(by, "rights_changed", user, before=before, after=_rights(user))
    user.forget_actions()


def set_active(*, user: User, active: bool, by: User) -> None:
    """Switch an account on or off. Off ends its sessions and API tokens at once; what it owns stays.

    Raises:
        NotYourself: users cannot lock themselves out.
        BeyondYou: the account may do more than `by`, also while it is off.
        FirstAdministrator: the first account stays on.
        LastAdministrator: no user would be left who can administer users.
    """
    if not active and user.pk == by.pk:
        raise NotYourself(_("You cannot disable your own account."))
    ceiling.touch(by, user)
    if not active:
        ceiling.stays(user)
    with keeping_an_administrator():
        approved = active and user.awaiting
        user.is_active = active
        user.awaiting = user.awaiting and not active
        user.save(update_fields=["is_active", "awaiting"])
        if not active:
            user.api_tokens.all().delete()
            sessions.end_others(user, but=None, by=by)
        verb = "account_approved" if approved else "account_enabled" if active else "account_disabled"
        audit.record(by, verb, user)
    user.forget_actions()
