"""What the side bar shows of studies."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> list[Entry]:
    """Return the navigation entry of the studies, which follows that of the trainings."""
    return [Entry(_("Hyperparameter search"), "search", reverse("studies:list"), Action.TRAINING_VIEW, order=42)]
