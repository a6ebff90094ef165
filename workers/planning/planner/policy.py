"""The numbers of the scheduling policy, in one place. Pure."""

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How the planner weighs what cannot all be had. Times are seconds; every default is what runs live.

    Attributes:
        guard_s: whoever waited longer goes before everybody who did not, oldest first.
        age_weight: card-hours of earlier use that one hour of waiting makes up for.
        cluster_weight: how much a cluster's use counts beside a person's own; a cluster is many people.
        cpu_weight: card-hours that one core-hour is worth.
        backfills: whether later jobs may start before one that waits for its devices.
        preempts: whether running work may be asked to make room.
        turn_s: whoever is first and waited longer calls back preemptible work that was let ahead of it
            (infinite: never).
        min_run_s: nothing is preempted before it ran this long; what made room before is left alone for twice as
            long after each time.
        most_protected_s: but for no longer than this, so that urgent work and guarantees wait for no more.
        grace_s: from the request to make room until the cards are free, at the latest.
        evicted_s: evicted work that has been away for longer goes back before urgent work.
        most_beneficiaries: jobs that room is made for in one pass; the next pass goes on.
    """

    guard_s: float = 6 * HOUR
    age_weight: float = 1.0
    cluster_weight: float = 0.1
    cpu_weight: float = 0.05
    backfills: bool = True
    preempts: bool = True
    turn_s: float = 12 * HOUR
    min_run_s: float = 600.0
    most_protected_s: float = 4 * HOUR
    grace_s: float = 100.0
    evicted_s: float = 6 * HOUR
    most_beneficiaries: int = 8

    def protected_s(self, times_preempted: int) -> float:
        """How long work that made room so often must run before it may have to again."""
        longest = max(self.min_run_s, self.most_protected_s)
        return min(longest, self.min_run_s * 2.0 ** min(times_preempted, 30))


DEFAULT = Policy()
