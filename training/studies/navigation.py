"""Navigation tab of studies."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the studies."""
    return [
        Tab(
            "training",
            _("Hyperparameter search"),
            reverse("studies:list"),
            Action.TRAINING_VIEW,
            order=42,
            icon="sliders",
        )
    ]
