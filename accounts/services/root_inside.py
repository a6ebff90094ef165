"""Root inside of jobs: administrators allow it to a person, who then switches it on and off."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit, ceiling
from aiplatform.lib.errors import NotAllowed


def allow(user: User, *, allowed: bool, by: User) -> None:
    """Let a person be root inside of their jobs, or take that back: what runs goes on to its end.

    Raises:
        BeyondYou: the account may do more than `by`.
        FirstAdministrator: another user changes the first account.
    """
    if user.root_allowed == allowed:
        return
    ceiling.touch(by, user)
    if by.pk != user.pk:
        ceiling.stays(user)
    user.root_allowed, user.root_inside = allowed, user.root_inside and allowed
    user.save(update_fields=["root_allowed", "root_inside"])
    audit.record(by, "root_allowed" if allowed else "root_revoked", user)


def switch(user: User, *, on: bool) -> None:
    """Switch it on or off for oneself.

    Raises:
        NotAllowed: no administrator allowed it.
    """
    if on and not user.root_allowed:
        raise NotAllowed(_("Root in the sandbox requires a permission. Ask an administrator."), field="root_inside")
    if user.root_inside != on:
        user.root_inside = on
        user.save(update_fields=["root_inside"])
        audit.record(user, "root_switched_on" if on else "root_switched_off", user)
