"""Navigation tab of evaluation parameters."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the evaluation parameters; the job kind adds that of the evaluations."""
    return [
        Tab(
            "models",
            _("Evaluation parameters"),
            reverse("inference:evaluation-sets"),
            Action.EVALUATIONS_VIEW,
            order=70,
            icon="sliders",
        )
    ]
