"""What the side bar shows of templates."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Entry


def entries() -> list[Entry]:
    """Return the navigation entry of the templates, which also covers the YAML editor."""
    return [Entry(_("Templates"), "copy", reverse("templates:list"), Action.JOBS_VIEW, ("/expert/",), order=47)]
