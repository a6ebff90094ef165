"""What the global search finds of this room."""

from __future__ import annotations

from collections.abc import Iterator

from accounts.models import User
from aiplatform.lib.search import Hit, having
from workers.models import Job
from workers.services import job_page


def jobs(user: User, words: str, limit: int) -> Iterator[Hit]:
    """Jobs by name, if their kind has a page for them."""
    for job in having(Job.objects.visible_to(user), words, "name").order_by("-pk")[:limit]:
        if url := job_page.url(job):
            yield Hit(job.name, url)
