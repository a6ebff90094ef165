"""Global search over images."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from workers.images.models import Image


def images(user: User, query: str, limit: int) -> Iterator[Hit]:
    """Find images by name and tag."""
    for image in filter_by_text(Image.objects.visible_to(user), query, "name", "tag")[:limit]:
        yield Hit(str(image), reverse("images:detail", args=[image.pk]))
