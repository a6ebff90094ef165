"""The section of the home page about storage."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from aiplatform.pages.home.sections import Section
from datasets.services import uploads

WARNING_PERCENT = 90


def storage(user: User) -> dict[str, Any] | None:
    """Return the storage of the user's datasets and its limit: {used, limit, percent, hue}; None without either."""
    used, limit = uploads.stored_bytes(user), env.STORAGE_QUOTA_BYTES
    if not used and not limit:
        return None
    percent = min(100.0, 100 * used / limit) if limit else None
    return {"used": used, "limit": limit, "percent": percent,
            "hue": "is-wait" if percent and percent >= WARNING_PERCENT else "is-run"}  # fmt: skip


STORAGE = Section("storage", "home/_storage.html", storage, needs=Action.DATASETS_CREATE, order=40, column="side")
