"""What the global search finds of this room."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import User
from aiplatform.lib.search import Hit, having
from workers import kinds
from workers.models import Job


def jobs(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Jobs by name, if their kind has a page for them."""
    for job in having(Job.objects.visible_to(user), words, "name").order_by("-pk")[:limit]:
        if url := kinds.url_of(job):
            yield Hit(job.name, url)
