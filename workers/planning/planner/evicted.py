"""Evicted work: brings it back to the very cards it came from, as soon as they are free. Pure.

It goes back before everything that waits, except what was promised the cards, urgent work, and, where its cards were
borrowed, work that owns them. Urgent work comes first only until it has been away for `Policy.evicted_s`. Until it is
back its cards are kept: what would outlive the moment at which all of them are free does not start there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from workers.planning.planner.fit import Space
from workers.planning.planner.policy import Policy
from workers.planning.planner.snapshot import Device, Running, Snapshot


class Evicted:
    """All evicted jobs, the longest evicted first, and what of their cards is free."""

    def __init__(self, snapshot: Snapshot, borrowed: frozenset[int], now: float, policy: Policy) -> None:
        waits = sorted((run for run in snapshot.running if run.away), key=lambda run: (run.evicted_since, run.job))
        own = [run for run in waits if run.job not in borrowed]
        self.overdue = [run for run in own if now - run.evicted_since >= policy.evicted_s]
        self.own = [run for run in own if now - run.evicted_since < policy.evicted_s]
        self.lent = [run for run in waits if run.job in borrowed]
        self._known: Mapping[int, Device] = {}
        self._elsewhere: dict[int, int] = {}  # free shares of devices that take no new work, as on drained machines
        if waits:
            self._known = {device.id: device for device in snapshot.devices}
            self._elsewhere = {device.id: device.capacity for device in snapshot.devices}
            for run in snapshot.running:
                for device, shares in run.held:
                    if device in self._elsewhere:
                        self._elsewhere[device] -= shares

    def fits(self, run: Running, space: Space) -> bool:
        """Whether all its cards are well and have room now."""
        return all(
            device in self._known and self._known[device].healthy and self._free(device, space) >= shares
            for device, shares in run.away
        )

    def back(self, run: Running, space: Space) -> Running:
        """Occupy its cards; return it as it runs then."""
        for device, shares in run.away:
            if device not in space.index:
                self._elsewhere[device] -= shares
        space.occupy(run.away)
        return replace(run, held=run.away, away=(), evicted_since=0.0, askable=False)

    def _free(self, device: int, space: Space) -> int:
        i = space.index.get(device)
        return self._elsewhere[device] if i is None else space.free[i]


def reserve_return(
    run: Running, ends: Iterable[tuple[float, tuple[tuple[int, int], ...]]], space: Space
) -> float | None:
    """Reserve the cards of evicted work for the first moment at which all are free, and return that moment.

    Args:
        ends: (unix seconds, what is given back then) of the work that holds devices.

    Returns:
        None where nobody can say, as one of its cards takes no new work; then none is kept.
    """
    wanted = {space.index[device]: shares for device, shares in run.away if device in space.index}
    if len(wanted) != len(run.away):
        return None
    free = list(space.free)
    for end, held in sorted(ends, key=lambda pair: pair[0]):
        space.release_into(held, free)
        if all(free[i] >= shares for i, shares in wanted.items()):
            for i, shares in wanted.items():
                free[i] -= shares
            space.reserve(free, wanted)
            return end
    return None
