"""The entry of the side bar."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> Iterable[Entry]:
    """One line, after inference."""
    return (Entry(_("Edge devices"), "cpu", "/edge/", Action.SERVICES_VIEW, order=75),)
