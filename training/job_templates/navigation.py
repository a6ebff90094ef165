"""Navigation tab of job templates."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from aiplatform.frame.navigation import Tab


def tabs() -> list[Tab]:
    """Return the tab of the templates, which the YAML editor belongs to."""
    return [
        Tab(
            "workspaces",
            _("Templates"),
            reverse("templates:list"),
            Action.JOBS_VIEW,
            ("/expert/",),
            order=70,
            icon="bookmark",
        )
    ]
