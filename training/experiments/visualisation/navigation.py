"""What the side bar shows of this room."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> list[Entry]:
    """Training visualisation, behind trainings and commands."""
    return [Entry(_("TensorBoard"), "chart", reverse("training:visualisation"), Action.JOBS_VIEW, order=46)]
