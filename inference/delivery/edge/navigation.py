"""Navigation tab of edge groups."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the edge groups."""
    return [Tab("devices", _("Edge groups"), reverse("inference:edge-list"), Action.SERVICES_VIEW, order=10)]
