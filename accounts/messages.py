"""The texts of messages about people, notifications and deliveries that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

NOTICE = {
    "account_requested": Wording(_("%(name)s asks for an account")),
    "test": Wording(_("A test of your notifications")),
    "arrived": Wording(_("It arrived, so it works.")),
}
DELIVERY = {
    "address_refused": Wording(_("The mail server refuses this address for good.")),
    "answered": Wording(_("The address answered %(status)s.")),
}
SECRET = {
    "missing": Wording(_("You have no secret %(names)s. Store it at %(page)s, then try again.")),
    "unreadable": Wording(
        _("Your secrets were stored under another key of the platform. Set their values anew at %(page)s.")
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("notice", NOTICE)
    wording.register("delivery", DELIVERY)
    wording.register("secret", SECRET)
