"""Planner inputs drawn at random."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from workers.planning.planner.snapshot import (
    URGENT,
    Cluster,
    Device,
    Node,
    Quota,
    Request,
    ResourceGroup,
    Running,
    Snapshot,
    Waiting,
    Window,
)

NOW = 1_000_000.0


HOUR = 3600.0


JOB_KINDS = ("training", "training", "environment")


COUNTED = ("job", "job", "environment")


requests = st.one_of(
    st.builds(Request, nodes=st.integers(1, 2), gpus=st.integers(1, 2)),
    st.builds(Request, nodes=st.integers(1, 3), gpus=st.integers(1, 4)),
    st.builds(Request, gpus=st.just(1), shares=st.integers(1, 7), card_memory_mib=st.sampled_from([0, 0, 4000])),
    st.builds(Request, gpus=st.sampled_from([1, 2, 4]), device_kind=st.just("npu")),
    st.builds(Request, nodes=st.integers(1, 2), cpu_shares=st.integers(1, 40)),
)


quotas = st.builds(Quota, st.sampled_from([None, 0, 1, 2, 4, 8]), st.booleans(), st.sampled_from([None, None, 2, 8]))


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A small platform, partly busy, with a queue of up to 14 jobs."""
    nodes = tuple(Node(n, f"node{n}", n == 0 or draw(st.integers(0, 4)) > 0) for n in range(draw(st.integers(1, 4))))
    devices = []
    for node in nodes:
        kind = draw(st.sampled_from(["gpu", "gpu", "gpu", "gpu", "npu"]))
        devices += [
            Device(
                node.id * 10 + i, node.id, kind, group=i // 2, healthy=draw(st.integers(0, 9)) > 0, memory_mib=16_000
            )
            for i in range(draw(st.integers(1, 4)))
        ]
        devices.append(Device(node.id * 10 + 9, node.id, kind="cpu", capacity=8 * draw(st.integers(1, 6))))
    lending = draw(st.booleans())
    limit = st.none() if lending else st.sampled_from([None, None, 0, 2, 8])
    lenders = st.builds(Quota, st.integers(1, 4), st.just(True))
    limits = st.tuples(lenders if lending else quotas, quotas, quotas)
    clusters = tuple(
        Cluster(
            c,
            f"lab{c}",
            dict(zip(("gpu", "npu", "cpu"), draw(limits), strict=True)),
            {name: most for name in ("job", "environment") if (most := draw(limit)) is not None},
        )
        for c in range(2)
    )
    waiting = tuple(
        Waiting(
            job,
            draw(st.integers(0, 2)),
            draw(st.integers(0, 1)),
            draw(requests),
            NOW - draw(st.sampled_from([60.0, HOUR, 7 * HOUR, 60 * HOUR])) - job,
            draw(st.sampled_from([0, 0, 0, 1, URGENT, URGENT])),
            draw(st.none() | st.sampled_from([60.0, HOUR, 24 * HOUR])),
            draw(st.booleans()),
            draw(st.sampled_from(JOB_KINDS)),
            counts_as=draw(st.sampled_from(COUNTED)),
        )
        for job in range(draw(st.integers(0, 14)))
    )
    groups = ()
    if draw(st.integers(0, 3)) == 0:
        windows = draw(st.sampled_from([(), (Window(0, 12 * 60),), (Window(12 * 60, 0),)]))
        groups = (ResourceGroup(1, "group", frozenset({0}), frozenset({draw(st.sampled_from(JOB_KINDS))}), windows),)
    return Snapshot(nodes, tuple(devices), clusters, draw(busy(devices)), waiting, groups=groups)


@st.composite
def busy(draw: st.DrawFn, devices: list[Device]) -> tuple[Running, ...]:
    """Jobs that hold one or two of the devices each."""
    found, left = [], [d for d in devices if draw(st.integers(0, 4)) > 0]
    while left:
        taken = [left.pop() for _ in range(min(len(left), draw(st.integers(1, 2))))]
        taken = [d for d in taken if d.kind == taken[0].kind]
        held = tuple((d.id, d.capacity if draw(st.booleans()) else 1) for d in taken)
        on_card = 0 if taken[0].kind == "cpu" else sum(shares for _, shares in held)
        found.append(
            Running(
                -len(found) - 1, draw(st.integers(0, 2)), draw(st.integers(0, 1)), held,
                draw(st.sampled_from([None, NOW - HOUR, NOW + HOUR, NOW + 9 * HOUR])), on_card,
                draw(st.booleans()), draw(st.sampled_from(JOB_KINDS)), taken[0].kind,
                draw(st.sampled_from([0, 0, 1, URGENT])), NOW - draw(st.sampled_from([60.0, HOUR, 2 * HOUR, 5 * HOUR])),
                draw(st.integers(0, 5)) == 0, draw(st.none() | st.integers(0, 14)),
                queued_at=NOW - draw(st.sampled_from([5 * HOUR, 80 * HOUR])),
                times_preempted=draw(st.sampled_from([0, 0, 1, 9])),
                counts_as=draw(st.sampled_from(COUNTED)),
            )
        )  # fmt: skip
    return tuple(found)


def taken(snapshot: Snapshot) -> Counter[int]:
    used: Counter[int] = Counter()
    for run in snapshot.running:
        used.update(dict(run.held))
    return used
