"""Navigation tab of TensorBoard."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of TensorBoard."""
    return [
        Tab(
            "experiments", _("TensorBoard"), reverse("training:visualisation"), Action.JOBS_VIEW, order=30, icon="chart"
        )
    ]
