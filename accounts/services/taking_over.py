"""Take over an account: an administrator acts as another user, with a banner and entries in the trail.

The session stays the administrator's. It names the user they act for, and every request checks again that they may.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import audit, ceiling
from aiplatform.lib.errors import NotAllowed

KEY = "acts_for"  # in the session: id of the account


class NoChain(NotAllowed, code="no_chain"): ...


def allowed(by: User, person: User) -> None:
    """Refuse to act as an account that may do more, as the first administrator, or as oneself.

    Raises:
        NotAllowed, BeyondYou.
    """
    by.require(Action.PEOPLE_MANAGE)
    ceiling.touch(by, person)
    if person.pk == by.pk or person.first or not person.is_active or person.deleted_at:
        raise NotAllowed(_("You cannot impersonate this account."))


def possible(request: Any, person: User) -> bool:
    """Return whether `start` would allow it."""
    try:
        allowed(request.user, person)
    except NotAllowed:
        return False
    return getattr(request, "behind", None) is None


def start(request: Any, person: User) -> None:
    """Act as `person` from the next request on.

    Raises:
        NoChain: the caller acts for another user already.
        NotAllowed, BeyondYou: see `allowed`.
    """
    if getattr(request, "behind", None) is not None:
        raise NoChain(_("You are already acting for another user. End that session first."))
    allowed(request.user, person)
    audit.record(request.user, "takeover_began", person)
    request.session[KEY] = person.pk


def end(request: Any) -> None:
    """Return to the own account; does nothing outside a takeover."""
    number = request.session.pop(KEY, None)
    behind = getattr(request, "behind", None)
    if number is not None and behind is not None:
        audit.record(behind, "takeover_ended", request.user if request.user.pk == number else f"#{number}")


def acted_for(session: Any, user: User) -> User | None:
    """Return the user that the session's owner acts for; None outside a takeover, or if it is no longer allowed."""
    number = session.get(KEY)
    if number is None:
        return None
    person = User.objects.filter(pk=number).first()
    if person is None:
        return None
    try:
        allowed(user, person)
    except NotAllowed:
        return None
    return person
