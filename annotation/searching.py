"""Global search over annotation projects."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from annotation.models import AnnotationProject
from datasets.models import Dataset

MAX_LINKS = 5


def list_projects(user: User, dataset: Dataset) -> list[tuple[str, str]]:
    """Return links to the newest projects that annotate a dataset, as far as a user may see them."""
    rows = AnnotationProject.objects.visible_to(user).filter(sets__source__dataset=dataset).distinct()
    return [(row.name, reverse("annotation:project-detail", args=[row.pk])) for row in rows.order_by("-pk")[:MAX_LINKS]]


def projects(user: User, text: str, limit: int) -> Iterator[Hit]:
    """Find projects by name."""
    for project in filter_by_text(AnnotationProject.objects.visible_to(user), text, "name").order_by("-pk")[:limit]:
        yield Hit(project.name, reverse("annotation:project-detail", args=[project.pk]))
