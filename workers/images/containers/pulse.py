"""Signs of life of whoever fetches an image, and how much of it came."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

from aiplatform.lib.claims import Claim

RENEW_S = 2.0
Result = TypeVar("Result")


class Pulse:
    """Keeps the claim of a fetch, and counts what came."""

    def __init__(self, claim: Claim, total: int) -> None:
        self.claim, self.total, self.done, self.last = claim, total, 0, float("-inf")

    def __call__(self, count: int) -> None:
        self.count(count)
        if time.monotonic() - self.last > RENEW_S:
            self.last = time.monotonic()
            self.claim.write(done_bytes=self.done, total_bytes=self.total)

    def count(self, count: int) -> None:
        """Count what came, without a sign of life: from whichever thread."""
        self.done += count

    def during(self, work: Callable[[], Result]) -> Result:
        """Do what says nothing for minutes, as an engine that unpacks what it was given; signs of life go on.

        `work` runs in a thread of its own, so it only counts.

        Raises:
            ClaimLost: somebody else took over; raised once `work` is over.
        """
        with futures.ThreadPoolExecutor(1) as pool:
            going = pool.submit(work)
            while not futures.wait([going], RENEW_S).done:
                self(0)
            return going.result()
