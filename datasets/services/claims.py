"""Who works on an import right now, and how far they are."""

from __future__ import annotations

import time
from datetime import timedelta

from django.utils.timezone import now

from aiplatform.lib.claims import Claim, ClaimLost, Claims

TTL = timedelta(seconds=60)
CLAIMS = Claims(ttl=TTL, epoch="tries", ends_with_process=True)
EVERY_S = 1.0  # progress is written at most this often


class ImportClaim:
    """The right to write one import's row, renewed with every sign of progress.

    It is lost when the import is cancelled, or another worker takes it over.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.last = 0.0

    def write(self, **columns: object) -> None:
        """Change the row if the claim is still held.

        Raises:
            ClaimLost: it is not.
        """
        self.claim.write(updated_at=now(), **columns)
        self.last = time.monotonic()

    def progress(self, phase: str, done: int, total: int) -> None:
        """Tell how far the work is; written at most once a second.

        Raises:
            ClaimLost: stop working.
        """
        if time.monotonic() - self.last >= EVERY_S:
            self.write(phase=phase, done=done, total=total)

    def finish(self, **columns: object) -> None:
        """Change the row and give it free.

        Raises:
            ClaimLost: it was not held any more.
        """
        if not self.claim.release(updated_at=now(), **columns):
            raise ClaimLost(f"The import was no longer held by {self.claim.holder}.")
