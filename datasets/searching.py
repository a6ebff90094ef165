"""Global search over datasets, and commands of the palette."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from datasets.models import Dataset


def datasets(user: User, text: str, limit: int) -> Iterator[Hit]:
    """Find datasets by name."""
    for dataset in filter_by_text(Dataset.objects.visible_to(user), text, "name").order_by("-pk")[:limit]:
        yield Hit(dataset.name, reverse("datasets:detail", args=[dataset.pk]))
