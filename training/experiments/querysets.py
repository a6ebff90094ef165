"""What a person may see of runs and of views of their table."""

from __future__ import annotations

from typing import Self

from accounts.access.querysets import OwnedQuerySet
from training.runs.querysets import LOOKS

#: What the table reads; a thousand rows of everything else cost as much as all of these.
_OF_RUN = ("job", "parent", "owner", "visibility", "experiment", "archived", "created_at", "name", "state", "ended_at")
_OF_JOB = tuple(
    f"job__{name}"
    for name in ("kind", "name", "state", "nodes", "gpus_per_node", "cluster", "started_at", "ended_at", "device_kind")
)
_OF_TRAINING = ("job__training__job", "job__training__preset", "job__training__version_label")


class RunQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def of_jobs(self) -> Self:
        """Runs that a job of the platform made itself; not parts of one, nor what a script elsewhere reported."""
        return self.exclude(job=None)

    def for_comparison(self) -> Self:
        """With what a comparison says of them."""
        with_jobs = self.select_related("job__training__code", "job__command__code", "job__owner", "owner")
        return with_jobs.select_related("job__cluster", "job__image_use__image").prefetch_related("params")

    def for_table(self, *, notes: bool) -> Self:
        """Fetch the columns that the table shows."""
        fields = [*_OF_RUN, "notes"] if notes else _OF_RUN
        rows = self.select_related("job__training").only(*fields, *_OF_JOB, *_OF_TRAINING)
        return rows.prefetch_related("owner", "job__cluster")  # few of each, many runs

    def without_looks(self) -> Self:
        """Not the short jobs that only show a batch, layers or a profile."""
        return self.exclude(job__training__extra__has_any_keys=LOOKS)


class ViewQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
