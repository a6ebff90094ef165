"""The rules of the door: who may register, and what registering gives."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from accounts.models import DoorRules, User
from accounts.services import audit

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
