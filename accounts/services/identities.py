"""Accounts of people who sign in through an identity provider: found, made, or refused by the registration policy.

An identity provider (OpenID Connect, LDAP) authenticates a user and calls `enter`. An account is found by the
pair of issuer and subject alone. A name or an e-mail says nothing, unless the operator says so and it passes
the account as `candidate`; the first administrator's account is never linked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access.permissions import FORMER_ROLE_NAMES
from accounts.models import Identity, Role, User
from accounts.models.reserved_names import check_username
from accounts.services import audit, people, registration
from aiplatform.lib.errors import DomainError, Invalid

log = logging.getLogger(__name__)
MAX_NAMESAKES = 1000


class NotLetIn(DomainError, code="not_let_in", status=403):
    """The person was authenticated, but may not enter here."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A person as an identity provider describes them; empty fields are those it does not tell."""

    issuer: str
    subject: str
    username: str = ""
    nickname: str = ""
    email: str = ""  # only one that the provider has verified
    phone: str = ""
    groups: frozenset[str] | None = None  # None: the provider tells nothing about groups


def by_email(email: str) -> User | None:
    """Return the one account with this e-mail; None where there is none or more than one."""
    people = list(User.objects.filter(email__iexact=email, deleted_at=None, first=False)[:2]) if email else []
    return people[0] if len(people) == 1 else None


def by_name(username: str) -> User | None:
    """Return the account of this name, unless it is the first administrator's."""
    return User.objects.filter(username__iexact=username, deleted_at=None, first=False).first() if username else None


def enter(
    arrival: Arrival, *, candidate: User | None = None, roles: Mapping[str, str] | None = None, own_name: bool = False
) -> User:
    """Return the account of the person, made where the registration policy allows it.

    Args:
        candidate: an account the operator's rules take for the same person, linked at the first arrival.
        roles: group there → name of a role here. A role named here follows the groups at each arrival, given and
            taken; other roles stay. The first administrator's stay in any case.
        own_name: the account must be called as there, since the person types that name here, too.

    Raises:
        NotLetIn: the account is disabled, waits for approval, or may not be made; the sentence says which.
    """
    try:
        user = _find_user(arrival) or _first_time(arrival, candidate, own_name=own_name)
        if not user.is_active:
            raise _waits() if user.awaiting else NotLetIn(_("This account is disabled. Ask an administrator."))
    except NotLetIn as exc:
        audit.record(None, "identity_refused", _find_user(arrival), issuer=arrival.issuer, why=exc.message)
        raise
    Identity.objects.filter(issuer=arrival.issuer, subject=arrival.subject).update(used_at=now())
    if not user.first:
        _refresh(user, arrival)
        _follow_groups(user, arrival, roles or {})
    return user


def _find_user(arrival: Arrival) -> User | None:
    row = Identity.objects.filter(issuer=arrival.issuer, subject=arrival.subject).select_related("user").first()
    return row.user if row else None


def _waits() -> NotLetIn:
    return NotLetIn(_("Your registration was received. You can sign in after an administrator has approved it."))


def _first_time(arrival: Arrival, candidate: User | None, *, own_name: bool) -> User:
    try:
        with transaction.atomic():
            user = candidate or _made(arrival, own_name=own_name)
            Identity.objects.create(user=user, issuer=arrival.issuer, subject=arrival.subject)
            audit.record(user, "identity_linked", user, issuer=arrival.issuer, made=candidate is None)
            return user
    except (IntegrityError, people.UsernameTaken):
        user_by_now = _find_user(arrival)  # two first arrivals at once: one makes the account, both enter it
        if user_by_now is None:
            raise NotLetIn(_("This name was taken a moment ago. Sign in again.")) from None
        return user_by_now


def _made(arrival: Arrival, *, own_name: bool) -> User:
    mode = registration.mode()
    if mode == registration.Registration.CLOSED:
        raise NotLetIn(_("You have no account here, and registration is closed. Ask an administrator."))
    name = _clean_name(arrival)
    if own_name and (name != arrival.username or User.objects.filter(username__iexact=name).exists()):
        raise NotLetIn(
            _("The name “%(name)s” belongs to another account. Ask an administrator.") % {"name": arrival.username[:50]}
        )
    make = partial(
        people.create,
        username=name if own_name else _free_username(name),
        password=None,
        nickname=arrival.nickname[:50] or name,
        must_change_password=False,
        awaiting=mode == registration.Registration.APPROVAL,
        by=None,
    )
    try:
        user = make(email=arrival.email, phone=arrival.phone[:30])
    except Invalid:
        user = make()  # an invalid address or number does not prevent a sign-in
    audit.record(user, "registered", user, issuer=arrival.issuer)
    return user


def _clean_name(arrival: Arrival) -> str:
    """Make a username: the provider's name for the person, else the e-mail's, else a plain word."""
    for candidate in (arrival.username, arrival.email.partition("@")[0]):
        name = re.sub(r"[^\w.@+-]+", "-", User.normalize_username(candidate))
        name = re.sub(r"\.{2,}", ".", name)[:40].strip(".-")
        try:
            check_username(name)
        except ValidationError:
            continue
        if name:
            return name
    return "person"


def _free_username(name: str) -> str:
    """Return `name`, or `name` with the first unused number."""
    taken = {
        username.lower()
        for username in User.objects.filter(username__istartswith=name).values_list("username", flat=True)
    }
    numbered = (f"{name}{n}" for n in range(2, MAX_NAMESAKES))
    free = next((username for username in (name, *numbered) if username.lower() not in taken), None)
    if free is None:
        raise NotLetIn(_("Too many users have this name. Ask an administrator for an account."))
    return free


def _refresh(user: User, arrival: Arrival) -> None:
    """Take over name, e-mail and phone as the provider has them now; what it does not tell stays."""
    provided = {"nickname": arrival.nickname[:50], "email": arrival.email, "phone": arrival.phone[:30]}
    changed = {field: value for field, value in provided.items() if value and value != getattr(user, field)}
    if not changed:
        return
    try:
        people.update(user=user, by=None, **changed)
    except Invalid as exc:
        log.warning("user=%s facts of the identity provider not taken: %s", user.pk, exc)
        user.refresh_from_db()


def _follow_groups(user: User, arrival: Arrival, mapping: Mapping[str, str]) -> None:
    if not mapping or arrival.groups is None:
        return
    mapping = {theirs: FORMER_ROLE_NAMES.get(ours, ours) for theirs, ours in mapping.items()}
    managed = {role.name: role for role in Role.objects.filter(name__in=set(mapping.values()))}
    if missing := set(mapping.values()) - set(managed):
        log.warning("role=%s is named for outside groups and does not exist here", min(missing))
    granted = {managed[ours] for theirs, ours in mapping.items() if theirs in arrival.groups and ours in managed}
    current = set(user.roles.all())
    wanted = (current - set(managed.values())) | granted
    if wanted == current:
        return
    try:
        people.set_rights(user=user, roles=wanted, groups=list(user.user_groups.all()), by=None)
    except people.LastAdministrator as exc:
        log.warning("user=%s keeps the roles that the identity provider takes away: %s", user.pk, exc)
