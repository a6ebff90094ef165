"""Global search over models, services and evaluations."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, having
from inference.models import Model, Service


def models(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Find models by name."""
    for model in having(Model.objects.visible_to(user), words, "name")[:limit]:
        yield Hit(model.name, reverse("inference:model-detail", args=[model.pk]))


def services(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Find services by name."""
    for service in having(Service.objects.visible_to(user), words, "name")[:limit]:
        yield Hit(service.name, reverse("inference:service-detail", args=[service.pk]))
