"""What the global search finds of this room."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit
from inference.models import Evaluation, Model, Service


def models(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Models by name."""
    for model in Model.objects.visible_to(user).filter(name__icontains=words)[:limit]:
        yield Hit(model.name, reverse("inference:model-detail", args=[model.pk]))


def services(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Services by name."""
    for service in Service.objects.visible_to(user).filter(name__icontains=words)[:limit]:
        yield Hit(service.name, reverse("inference:service-detail", args=[service.pk]))


def evaluations(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Evaluations by name."""
    found = Evaluation.objects.visible_to(user).select_related("job").filter(job__name__icontains=words)
    for evaluation in found[:limit]:
        yield Hit(evaluation.job.name, reverse("inference:evaluation-detail", args=[evaluation.pk]))
