"""The rules of the door: who may register, and what registering gives."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.timezone import now
from django.utils.translation import gettext_lazy

from accounts.models import DoorRules, User
from accounts.services import audit, notify

TOLD_WITHIN = timedelta(days=7)
MOST_TOLD = 50  # a flood of registrations is no flood of messages

Registration = DoorRules.Registration


def registration() -> str:
    """closed, open or approval; what an administrator chose, else what the environment says."""
    if not settings.REGISTRATION_OPEN:
        return Registration.CLOSED
    row = DoorRules.objects.first()
    return row.registration if row else Registration.OPEN


@transaction.atomic
def set_registration(mode: str, *, by: User) -> None:
    """Choose who may register. AIP_REGISTRATION=0 keeps it closed whatever is chosen here."""
    before = registration()
    DoorRules.objects.update_or_create(pk=1, defaults={"registration": mode})
    if mode != before:
        audit.record(by, "settings_changed", "registration", before=before, after=mode)


def tell_administrators() -> None:
    """Say once to each administrator who waits for approval; from a sweep, so that registering takes no longer."""
    waiting = User.objects.filter(awaiting=True, deleted_at=None, date_joined__gt=now() - TOLD_WITHIN)
    if not waiting:
        return
    for administrator in User.objects.administrators():
        for person in waiting[:MOST_TOLD]:
            notify.notify(
                administrator,
                "approval",
                title=format_lazy(gettext_lazy("{name} asks for an account"), name=person.username),
                url=reverse("accounts:person", args=[person.pk]),
                key=f"account-{person.pk}",
            )
