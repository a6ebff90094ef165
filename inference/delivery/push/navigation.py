"""The entry of the side bar."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> Iterable[Entry]:
    """One line, after devices."""
    return (Entry(_("Export targets"), "target", "/push/", Action.MODELS_VIEW, order=76),)
