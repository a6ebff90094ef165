"""Navigation tab of export targets."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the export targets."""
    return [
        Tab("devices", _("Export targets"), reverse("inference:push-list"), Action.MODELS_VIEW, order=20, icon="target")
    ]
