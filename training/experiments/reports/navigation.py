"""Navigation tab of reports."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the reports."""
    return [Tab("experiments", _("Reports"), reverse("reports:list"), Action.TRAINING_VIEW, order=40, icon="file-text")]
