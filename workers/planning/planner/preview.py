"""Preview: what the planner would do with a request that nobody has submitted. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from workers.planning.planner.fit import Never, Place, why_never
from workers.planning.planner.plan import Wait, plan
from workers.planning.planner.policy import DEFAULT, Policy
from workers.planning.planner.snapshot import Snapshot, Waiting

ASKED = 0
"""Number of the job that nobody has submitted; no other has it."""


@dataclass(frozen=True, slots=True)
class Preview:
    """`now` has `places`, `waits` has `wait` (reason, position, estimated start), `never` has every reason.

    `makes_room` counts the running jobs that would be asked to leave.
    """

    kind: Literal["now", "waits", "never"]
    places: tuple[Place, ...] = ()
    wait: Wait | None = None
    never: tuple[Never, ...] = ()
    makes_room: int = 0


def preview(snapshot: Snapshot, requested: Waiting, now: float, policy: Policy = DEFAULT) -> Preview:
    """Fits now, waits for something, or can never fit.

    Args:
        asked: the request as a job; its number is replaced by `ASKED`.
        now: unix seconds.
    """
    cluster = next((c for c in snapshot.clusters if c.id == requested.cluster), None)
    if cluster is None:
        return Preview("never", never=(Never("no_cluster", "cluster", {}),))
    never = why_never(
        requested.request, snapshot.nodes, snapshot.devices, cluster,
        kind=requested.kind, counts_as=requested.counts_as, groups=snapshot.groups,
        clusters=snapshot.clusters, preemptible=requested.preemptible,
    )  # fmt: skip
    if never:
        return Preview("never", never=never)
    decided = plan(replace(snapshot, waiting=(*snapshot.waiting, replace(requested, job=ASKED))), now, policy)
    for assignment in decided.assignments:
        if assignment.job == ASKED:
            return Preview("now", places=assignment.places)
    leave = sum(preemption.for_job == ASKED for preemption in decided.preemptions)
    return Preview("waits", wait=decided.waits[ASKED], makes_room=leave)
