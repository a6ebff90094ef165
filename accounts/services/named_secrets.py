"""Secrets by name: set by a user, read by what runs as this user, never shown.

What names a secret keeps the name alone. The value is looked up when a job is submitted or a step begins, as the person
whom it runs as, so sharing a pipeline shares no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import NamedSecret, User
from accounts.services import audit
from aiplatform.lib import sealed, secret_names, wording
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, Refusals
from aiplatform.lib.registry import Registry, dotted_name

MAX_SECRETS = 200  # of one person
MAX_BYTES = 16 << 10  # of a value
PAGE = "/account/secrets/"
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_VALUE = "value"  # what a value is sealed as


class MissingSecret(DomainError, code="secret_missing", status=400, field="secrets"):
    """A person has no secret of a name that something needs."""


@dataclass(frozen=True, slots=True)
class Use:
    """Something of a person's that names a secret, and its page."""

    label: str
    url: str


#: Answers with what of a person's names secrets, by the name of the secret.
Asker = Callable[[User], Mapping[str, list[Use]]]
ASKERS: Registry[Asker] = Registry("user of named secrets", name=dotted_name)
register = ASKERS.register  # called from `AppConfig.ready()`


def uses_of(user: User) -> dict[str, list[Use]]:
    """Return what uses the secrets of a user, by the name of the secret."""
    uses_by_name: dict[str, list[Use]] = {}
    for list_uses in ASKERS:
        for name, uses in list_uses(user).items():
            uses_by_name.setdefault(name, []).extend(uses)
    return uses_by_name


def is_name(text: str) -> bool:
    """Whether a secret may be called this."""
    return _NAME.fullmatch(text) is not None and not text.startswith("AIP_")


def check_name(name: str, *, field: str = "name") -> None:
    """Raise an error for an invalid name of a secret.

    Raises:
        Invalid.
    """
    if not _NAME.fullmatch(name):
        text = _(
            "“%(name)s” is not a valid secret name: use uppercase letters, digits and _, at most 64, starting "
            "with a letter."
        )
        raise Invalid(text % {"name": name[:80]}, field=field)
    if name.startswith("AIP_"):
        raise Invalid(_("%(name)s: names starting with AIP_ are reserved.") % {"name": name}, field=field)


def check_value(value: str) -> None:
    """Raise an error for a value that is too long, or too short to be masked in a log.

    Raises:
        Invalid: it never holds the value.
    """
    if len(value.strip()) < secret_names.MIN_LENGTH:
        text = _("A secret must have at least %(least)s characters; a shorter one cannot be hidden in logs.")
        raise Invalid(text % {"least": secret_names.MIN_LENGTH}, field="value")
    if len(value.encode(errors="replace")) > MAX_BYTES:
        text = _("A secret can have at most %(most)s bytes: it is a key or a password, not a file.")
        raise Invalid(text % {"most": MAX_BYTES}, field="value")
    if "\0" in value or secret_names.MASK in value or not _is_text(value):
        raise Invalid(_("Invalid value: it contains characters that programs cannot read, or placeholder dots."),
                      field="value")  # fmt: skip


def _is_text(value: str) -> bool:
    """Whether it can be written as UTF-8: half a character cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def written(text: str) -> str:
    """A value as it was typed or sent: lines end as Unix ends them, and the last one does not end."""
    return text.replace("\r\n", "\n").rstrip("\n")


@transaction.atomic
def add(*, user: User, name: str, value: str, note: str = "") -> NamedSecret:
    """Store a value under a new name.

    Raises:
        Invalid: see `check_name` and `check_value`; or the person has `MAX_SECRETS` already.
        NameTaken: the person has one of this name.
    """
    value, refusals = written(value), Refusals()
    with refusals:
        check_name(name)
    with refusals:
        check_value(value)
    with refusals:
        if user.named_secrets.count() >= MAX_SECRETS:
            raise Invalid(_("At most %(most)s secrets. Delete one first.") % {"most": MAX_SECRETS}, field="name")
    refusals.end()
    try:
        with transaction.atomic():
            row: NamedSecret = NamedSecret.objects.create(user=user, name=name, note=note, sealed=_sealed(value))
    except IntegrityError:
        text = _("You already have a secret %(name)s. Replace its value, or choose another name.")
        raise NameTaken(text % {"name": name}) from None
    audit.record(user, "secret_added", user, name=name)
    return row


@transaction.atomic
def change(row: NamedSecret, *, by: User, value: str | None = None, note: str | None = None) -> NamedSecret:
    """Replace the value or the note; None leaves it. What runs already goes on with the old value.

    Raises:
        Invalid: see `check_value`.
    """
    columns: dict[str, object] = {} if note is None else {"note": note}
    if value is not None:
        check_value(written(value))
        columns |= {"sealed": _sealed(written(value)), "changed_at": now()}
        audit.record(by, "secret_replaced", row.user, name=row.name)
    if columns:
        NamedSecret.objects.filter(pk=row.pk).update(**columns)
    row.refresh_from_db()
    return row


@transaction.atomic
def delete(row: NamedSecret, *, by: User) -> None:
    """Forget a secret. What names it fails from now on, with a sentence that says so."""
    audit.record(by, "secret_deleted", row.user, name=row.name)
    row.delete()


def check(user: User, names: Iterable[str], *, field: str = "secrets") -> None:
    """Refuse names that this person keeps no secret under.

    Raises:
        MissingSecret: naming all of them.
    """
    wanted = list(dict.fromkeys(names))
    there = set(NamedSecret.objects.visible_to(user).filter(name__in=wanted).values_list("name", flat=True))
    if gone := [name for name in wanted if name not in there]:
        listed = ", ".join(name[:64] for name in gone[:20])
        raise MissingSecret(wording.message("secret.missing", names=listed, page=PAGE), field=field)


def values(user: User, names: Iterable[str], *, field: str = "secrets") -> dict[str, str]:
    """Return the values of a user's secrets, and record their use.

    Raises:
        MissingSecret: see `check`.
        Invalid: they were kept under another secret key of the platform.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    check(user, wanted, field=field)
    rows = NamedSecret.objects.visible_to(user).filter(name__in=wanted)
    try:
        values_by_name = {row.name: sealed.unseal(row.sealed)[_VALUE] for row in rows}
    except sealed.Unsealable:
        raise Invalid(wording.message("secret.unreadable", page=PAGE), field=field) from None
    rows.update(used_at=now())
    return values_by_name


def _sealed(value: str) -> str:
    return sealed.seal({_VALUE: value})
