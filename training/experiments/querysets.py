"""What a person may see of runs and of views of their table."""

from __future__ import annotations

from typing import Self

from accounts.querysets import OwnedQuerySet


class RunQuerySet(OwnedQuerySet):
    visibility_path = "visibility"

    def of_jobs(self) -> Self:
        """Runs that a job of the platform made itself; not parts of one, nor what a script elsewhere reported."""
        return self.exclude(job=None)

    def for_comparison(self) -> Self:
        """With what a comparison says of them."""
        return self.select_related("job__training", "job__owner", "owner").prefetch_related("params")


class ViewQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
