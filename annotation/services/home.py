"""The section of the home page with datasets to continue annotating."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.sections import Section
from annotation.services import todo


def open_work(user: User) -> dict[str, Any] | None:
    """Return the context of templates/annotation/_todo.html, or None without open images."""
    rows = todo.for_user(user)
    return {"todo": rows} if rows else None


ANNOTATION = Section("annotation", "home/_annotation.html", open_work, needs=Action.ANNOTATION_ANNOTATE, order=30)
