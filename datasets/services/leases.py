"""Who works on an import right now, and how far they are."""

from __future__ import annotations

import time
from datetime import timedelta

from django.utils.timezone import now

from datasets.models import Import

LEASE = timedelta(seconds=60)
EVERY_S = 1.0  # progress is written at most this often


class LeaseLost(Exception):
    """The import was cancelled, or another worker took it over: stop, and write nothing more."""


class Lease:
    """The right to write one import's row, renewed with every sign of progress."""

    def __init__(self, import_id: int, key: str) -> None:
        self.import_id, self.key = import_id, key
        self.last = 0.0

    def write(self, **fields: object) -> None:
        """Change the row if the lease is still held.

        Raises:
            LeaseLost: it is not.
        """
        fields.setdefault("lease_until", now() + LEASE)
        row = Import.objects.filter(pk=self.import_id, lease_key=self.key)
        if not row.update(updated_at=now(), **fields):
            raise LeaseLost(f"lease {self.key} of import {self.import_id}")
        self.last = time.monotonic()

    def progress(self, phase: str, done: int, total: int) -> None:
        """Tell how far the work is; written at most once a second.

        Raises:
            LeaseLost: stop working.
        """
        if time.monotonic() - self.last >= EVERY_S:
            self.write(phase=phase, done=done, total=total)
