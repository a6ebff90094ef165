"""Global search over services."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit, filter_by_text
from inference.serving.models import Service


def services(user: User, terms: str, limit: int) -> Iterator[Hit]:
    """Find services by name."""
    for service in filter_by_text(Service.objects.visible_to(user), terms, "name")[:limit]:
        yield Hit(service.name, reverse("inference:service-detail", args=[service.pk]))
