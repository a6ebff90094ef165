"""Global search over people."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import reverse

from accounts.models import User
from aiplatform.lib.search import Hit


def people(user: User, text: str, limit: int) -> Iterator[Hit]:
    """Find people by name, nickname, phone or e-mail."""
    for person in User.objects.visible_to(user).named(text).order_by("username")[:limit]:
        yield Hit(str(person), reverse("accounts:person", args=[person.pk]))
