"""Registration policy: who may register, and who is notified of accounts that wait for approval."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.timezone import now

from accounts.models import RegistrationPolicy, User
from accounts.services import audit, notify
from aiplatform.lib.wording import message

NOTIFIED_WITHIN = timedelta(days=7)
MAX_NOTIFIED = 50  # a flood of registrations is no flood of messages

Registration = RegistrationPolicy.Registration


def mode() -> str:
    """Return "closed", "open" or "approval": what an administrator chose, else what the environment says."""
    if not settings.REGISTRATION_OPEN:
        return Registration.CLOSED
    row = RegistrationPolicy.objects.first()
    return row.registration if row else Registration.OPEN


@transaction.atomic
def set_mode(new: str, *, by: User) -> None:
    """Choose who may register. AIP_REGISTRATION=0 keeps it closed whatever is chosen here."""
    before = mode()
    RegistrationPolicy.objects.update_or_create(pk=1, defaults={"registration": new})
    if new != before:
        audit.record(by, "settings_changed", "registration", before=before, after=new)


def notify_administrators() -> None:
    """Notify each administrator once of those who wait for approval. A sweep calls it, so registering stays fast."""
    waiting = User.objects.filter(awaiting=True, deleted_at=None, date_joined__gt=now() - NOTIFIED_WITHIN)
    if not waiting:
        return
    for administrator in User.objects.administrators():
        for person in waiting[:MAX_NOTIFIED]:
            notify.notify(
                administrator,
                "approval",
                title=message("notice.account_requested", name=person.username),
                url=reverse("accounts:person", args=[person.pk]),
                key=f"account-{person.pk}",
            )
