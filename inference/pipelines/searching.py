"""What the global search finds of pipelines."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from inference.pipelines.models import Pipeline


def pipelines(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Find pipelines by name."""
    for row in filter_by_text(Pipeline.objects.visible_to(user), words, "name").order_by("-pk")[:limit]:
        yield Hit(row.name, reverse("pipelines:detail", args=[row.pk]))
