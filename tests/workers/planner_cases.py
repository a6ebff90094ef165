"""Small clusters, jobs and requests for tests of the planner."""

from __future__ import annotations

from workers.planning.planner.snapshot import Cluster, Device, Node, Request, Running, Snapshot, Waiting

HOUR = 3600.0


NOW = 1_000_000 * HOUR  # a Saturday, 16:00 UTC


def machines(nodes=1, cards=4, kind="gpu"):
    """Nodes of `cards` cards in groups of four; device ids are node * 100 + index."""
    found = [Node(n, f"node{n}") for n in range(1, nodes + 1)]
    return tuple(found), tuple(
        Device(node.id * 100 + i, node.id, kind, group=i // 4, memory_mib=16_000)
        for node in found
        for i in range(cards)
    )


LAB = (Cluster(1, "lab"),)


def picture(running=(), waiting=(), clusters=LAB, nodes=1, cards=4, **more):
    there, devices = machines(nodes, cards)
    return Snapshot(there, devices, tuple(clusters), tuple(running), tuple(waiting), **more)


def run(job, *devices, hours=2.0, cluster=1, preemptible=True, **more):
    """A job on whole cards that started `hours` ago."""
    held = tuple((device, 8) for device in devices)
    started = NOW - hours * HOUR
    return Running(
        job, job, cluster, held, NOW + 9 * HOUR, 8 * len(held), preemptible, started_at=started, **more
    )  # fmt: skip


def ask(job, gpus=1, *, nodes=1, priority=0, cluster=1, age=60.0, **more):
    return Waiting(job, job, cluster, Request(nodes, gpus), NOW - age, priority, **more)
