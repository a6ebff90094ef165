"""Navigation tabs of training besides the list of trainings, which its job kind adds."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tabs of presets and parameter sets."""
    return [
        Tab("training", _("Presets"), reverse("training:presets"), Action.TRAINING_VIEW, order=44, icon="list"),
        Tab("training", _("Parameter sets"), reverse("training:params"), Action.TRAINING_VIEW, order=46, icon="save"),
    ]
