"""What the side bar shows of pipelines."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> list[Entry]:
    """The list of pipelines, behind models in use."""
    return [Entry(_("Pipelines"), "pipeline", reverse("pipelines:list"), Action.JOBS_VIEW, order=80)]
