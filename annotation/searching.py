"""Global search over annotation projects."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from annotation.models import AnnotationProject


def projects(user: User, text: str, limit: int) -> Iterator[Hit]:
    """Find projects by name."""
    for project in filter_by_text(AnnotationProject.objects.visible_to(user), text, "name").order_by("-pk")[:limit]:
        yield Hit(project.name, reverse("annotation:project-detail", args=[project.pk]))
