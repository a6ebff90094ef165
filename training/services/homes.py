"""Home folders: a folder per person that outlives every job, the same in each of their environments."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from accounts.models import User

HOMES = "home"


def home_of(user: User) -> Path:
    """The person's own folder on the platform; a username like ".." must not lead out of it."""
    name = user.username if not user.username.startswith(".") else f"user-{user.pk}"
    return Path(settings.DATA_ROOT) / HOMES / name
