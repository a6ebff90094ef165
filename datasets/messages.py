"""The texts of messages about datasets that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Show, Wording

GROUPED = {"": "", "folder": _("by folder"), "prefix": _("by prefix")}

VERSION = {
    "split": Wording(
        _("%(of)s split %(train)s/%(val)s/%(test)s, seed %(seed)s %(group)s"),
        group=Show("group", lambda value: GROUPED[value]),
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("version", VERSION)
