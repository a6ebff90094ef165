"""Global search over models."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from inference.registry.models import Model


def models(user: User, terms: str, limit: int) -> Iterator[Hit]:
    """Find models by name."""
    for model in filter_by_text(Model.objects.visible_to(user), terms, "name")[:limit]:
        yield Hit(model.name, reverse("inference:model-detail", args=[model.pk]))
