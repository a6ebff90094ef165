"""The number of servers that a service needs, from the load of its servers. Pure.

Grows at once where callers wait, shrinks by one after a time without need: what Kubernetes' HorizontalPodAutoscaler
calls a stabilisation window (https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inference.serving.server.metrics import SECONDS

COOLDOWN_S = 300.0
MAX_BUSY_SHARE = 0.7  # of the time the servers that stay may be busy


@dataclass(frozen=True)
class Counts:
    """What one server has counted since it started, at a moment.

    Attributes:
        at: seconds of any clock that all looks share.
        queued: requests by how long they waited, in the buckets of `SECONDS` and one above.
        running_s: how long the model ran.
        refused: requests that found the queue full.
    """

    at: float
    queued: Sequence[int]
    running_s: float
    refused: int


@dataclass(frozen=True)
class LoadSample:
    """What happened at all servers between two looks.

    Attributes:
        queue_s: time that 95 % of the requests waited at most, None without requests.
        busy: share of the time in which the model ran, 0..1, in the mean of the servers.
        refused: requests that found the queue full.
    """

    queue_s: float | None
    busy: float
    refused: int


def between(pairs: Iterable[tuple[Counts, Counts]]) -> LoadSample | None:
    """Put together what servers counted before and now; None where no time has passed at any."""
    waits, busy, refused = [0] * (len(SECONDS) + 1), [], 0
    for before, now in pairs:
        passed = now.at - before.at
        if passed <= 0 or len(before.queued) != len(now.queued) or sum(now.queued) < sum(before.queued):
            continue  # another process counts there now
        waits = [sum(three) for three in zip(waits, now.queued, (-count for count in before.queued), strict=True)]
        busy.append(min(1.0, (now.running_s - before.running_s) / passed))
        refused += now.refused - before.refused
    if not busy:
        return None
    return LoadSample(_percentile(waits, 0.95), sum(busy) / len(busy), refused)


def _percentile(waits: Sequence[int], share: float) -> float | None:
    """Time in seconds that this share of the requests waited at most, as if waits lay evenly within a bucket."""
    reached, below, low = share * sum(waits), 0, 0.0
    for high, count in zip((*SECONDS, 2 * SECONDS[-1]), waits, strict=True):
        if count and below + count >= reached:
            return low + (high - low) * (reached - below) / count
        below, low = below + count, high
    return None


def needed_servers(
    look: LoadSample, *, servers: int, coming: int, min_servers: int, max_servers: int, target_s: float, calm_s: float
) -> int:
    """Return the number of servers that are needed.

    Args:
        servers: that answer; `coming`: that will.
        target_s: time that requests may wait.
        calm_s: how long fewer would have done, see `is_calm`.
    """
    current = servers + coming
    if current < max(1, min_servers):
        return max(1, min_servers)
    if current > max_servers:
        return max_servers
    if look.refused or (look.queue_s is not None and look.queue_s > target_s):
        return current if coming else min(max_servers, current + 1)
    if calm_s >= COOLDOWN_S and current > max(1, min_servers) and is_calm(look, servers=servers, target_s=target_s):
        return current - 1
    return current


def is_calm(look: LoadSample, *, servers: int, target_s: float) -> bool:
    """Whether one server less would do."""
    waits = look.queue_s is not None and look.queue_s > target_s / 2
    return servers > 1 and not look.refused and not waits and look.busy * servers / (servers - 1) <= MAX_BUSY_SHARE
