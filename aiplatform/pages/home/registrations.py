"""Registrations that wait for an administrator, on the home page."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.approvals import ApprovalSource, Pending


def pending_registrations(user: User, limit: int) -> Iterator[Pending]:
    """Yield accounts that cannot sign in before an administrator approves them."""
    people = User.objects.visible_to(user).filter(awaiting=True, deleted_at=None)
    for person in people.order_by("pk")[:limit]:
        detail = person.email or _("No email address")
        url = f"{reverse('accounts:people')}?state=awaiting"
        yield Pending(person.get_full_name(), detail, url, person.date_joined)


REGISTRATIONS = ApprovalSource(
    "registrations", gettext_lazy("Registration"), "person", pending_registrations, needs=Action.PEOPLE_MANAGE
)
