"""What the side bar shows of this room: the lists of the kinds of jobs."""

from __future__ import annotations

from collections.abc import Iterator

from aiplatform.frame.navigation import Entry
from workers.core.kinds import KINDS


def kinds_of_jobs() -> Iterator[Entry]:
    """One entry for each kind of job that has a list of its own."""
    for kind in KINDS:
        if path := kind.list_path():
            yield Entry(kind.plural_label(), kind.icon, path, kind.view_action, order=kind.order)
