"""Passwords: generated, checked, and changed together with what a change ends."""

from __future__ import annotations

import secrets

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.models import OneTimeLink, User
from accounts.services import audit
from aiplatform.lib.errors import DomainError, Invalid

ALPHABET = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
LENGTH = 20  # 20 of 56 signs: 116 bits


class WeakPassword(Invalid, code="weak_password", field="password"): ...


class ChangeNeeded(DomainError, code="password_change_needed", status=403): ...


def generate() -> str:
    """A strong password for the first sign-in, in groups that can be read out: "abcde-fghij-kmnpq-rstuv"."""
    signs = [secrets.choice(ALPHABET) for _ in range(LENGTH)]
    return "-".join("".join(signs[at : at + 5]) for at in range(0, LENGTH, 5))


def check(password: str, user: User | None = None) -> None:
    """Refuse a password that is short, common or like the person's name.

    Raises:
        WeakPassword: with all reasons in one sentence each.
    """
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise WeakPassword(" ".join(exc.messages)) from exc


@transaction.atomic
def change(*, user: User, password: str, must_change: bool = False, by: User | None = None) -> None:
    """Set a password. Other sessions, API tokens and unused password links of this person end with the old one.

    Raises:
        WeakPassword: see `check`.
    """
    check(password, user)
    user.set_password(password)
    user.must_change_password = must_change
    user.save(update_fields=["password", "must_change_password"])
    user.api_tokens.all().delete()
    OneTimeLink.objects.filter(user=user, used_at=None).delete()
    audit.record(by, "password_changed", user)
