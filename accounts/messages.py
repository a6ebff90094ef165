"""The texts of messages about people, notifications and deliveries that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording

NOTICE = {
    "account_requested": _("%(name)s requests an account"),
    "test": _("Test notification"),
    "arrived": _("The test message arrived. This channel works."),
}
DELIVERY = {
    "address_refused": _("The mail server rejects this address permanently."),
    "answered": _("The address responded with %(status)s."),
}
SECRET = {
    "missing": _("You have no secret %(names)s. Store it at %(page)s, then try again."),
    "unreadable": _(
        "Your secrets were encrypted with another key of the platform. Set their values again at %(page)s."
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("notice", NOTICE)
    wording.register("delivery", DELIVERY)
    wording.register("secret", SECRET)
