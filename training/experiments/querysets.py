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
        with_jobs = self.select_related("job__training__code", "job__command__code", "job__owner", "owner")
        return with_jobs.select_related("job__cluster", "job__image_use__image").prefetch_related("params")

    def for_table(self, *, notes: bool) -> Self:
        """With what the table says of them."""
        whole = self.select_related("job__training", "job__cluster", "owner").defer("job__spec")
        return whole if notes else whole.defer("notes")

    def without_looks(self) -> Self:
        """Not the short jobs that only show a batch or layers."""
        return self.exclude(job__training__extra__has_any_keys=["show_batch", "show_layers"])


class ViewQuerySet(OwnedQuerySet):
    visibility_path = "visibility"
