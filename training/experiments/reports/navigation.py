"""What the side bar shows of reports."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> list[Entry]:
    """The list of reports, below the table of runs."""
    return [Entry(_("Reports"), "file", reverse("reports:list"), Action.TRAINING_VIEW, order=45)]
