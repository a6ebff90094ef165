"""Global search: jobs."""

from __future__ import annotations

from collections.abc import Iterator

from aiplatform.lib.search import Source
from workers.core.kinds import KINDS


def kinds_of_jobs() -> Iterator[Source]:
    """One source for each kind of job, with its label and icon, for those who may see that kind."""
    for kind in KINDS:
        yield Source(kind.name, kind.label, kind.icon, kind.view_action, kind.find)
