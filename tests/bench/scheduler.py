"""Time of one scheduler pass: python -m tests.bench.scheduler [waiting] [GPUs].

10,000 waiting jobs of mixed sizes on 256 GPUs: empty, full, and full of preemptible and borrowed work among
four clusters with guarantees. Each row also gives the floor of a pure Python loop over the same data (`floor`),
measured in turn with `plan` in the same run, and the ratio of the two.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from operator import attrgetter

from workers.planning.planner.order import cost_per_hour
from workers.planning.planner.plan import Wait, plan
from workers.planning.planner.snapshot import Cluster, Device, Node, Quota, Request, Running, Snapshot, Waiting
from workers.planning.planner.uncollected import uncollected

NOW = 1_000_000.0
CARDS_PER_NODE = 8


def snapshot(waiting: int, cards: int, *, full: bool, lends: bool = False, seed: int = 1) -> Snapshot:
    """A cluster of `cards` cards in nodes of 8 and a queue of 40 people in 4 clusters.

    Args:
        lends: the clusters have guarantees and lend each other what is idle, the first one holds most of it,
            and everything that runs may be preempted.
    """
    rng = random.Random(seed)
    nodes = tuple(Node(n, f"node{n}") for n in range(-(-cards // CARDS_PER_NODE)))
    devices = tuple(Device(i, i // CARDS_PER_NODE, group=i % CARDS_PER_NODE // 4) for i in range(cards)) + tuple(
        Device(10_000 + n.id, n.id, kind="cpu", capacity=8 * 64 * 2) for n in nodes
    )
    quota = Quota(cards // 4, borrows=True, per_user=64) if lends else Quota(cards // 2, per_user=64)
    clusters = tuple(Cluster(c, f"lab{c}", {"gpu": quota}, {"job": 40}) for c in range(4))
    running = tuple(
        Running(
            -1 - i, i % 40, max(0, i % 8 - 4) if lends else i % 4, ((i, 8),), NOW + rng.uniform(60, 40_000), 8,
            preemptible=lends, started_at=NOW - 3600.0 - i,
        )
        for i in range(cards if full else 0)
    )  # fmt: skip
    sizes = [1] * 60 + [2] * 15 + [4] * 12 + [8] * 10
    queue, requests = [], {}
    for job in range(waiting):
        nodes_asked = rng.choice([2, 4]) if rng.random() < 0.03 else 1
        gpus = 8 if nodes_asked > 1 else rng.choice(sizes)
        request = Request(nodes_asked, gpus) if rng.random() < 0.95 else Request(cpu_shares=8 * rng.randint(1, 8))
        request = requests.setdefault(request, request)  # one object for all that ask alike, as the picture has it
        runtime = rng.choice([None, 1800.0, 3600.0, 6 * 3600.0, 24 * 3600.0])
        queued = NOW - rng.expovariate(1 / 14_400)
        priority = rng.choice([0] * 30 + [1] * 5 + [100])
        queue.append(Waiting(job, job % 40, job % 4, request, queued, priority, runtime))
    usage = {owner: rng.uniform(0, 2000) for owner in range(40)}
    return Snapshot(nodes, devices, clusters, running, tuple(queue), usage)


def floor(snapshot: Snapshot, now: float) -> dict[int, Wait]:
    """What a planner that must answer for every job cannot avoid, and nothing else.

    Sorts the queue by priority and by use less the time waited, reads of each job what any decision depends on
    (request, owner, cluster, run time), adds up one sum per owner and one per cluster, and makes the answer
    (`Wait`). It compares nothing with limits or devices, looks for no place and estimates no start.
    """
    usage, costs, waits = snapshot.usage, dict[int, float](), dict[int, Wait]()
    scores = [usage.get(job.owner, 0.0) - (now - job.queued_at) / 3600.0 for job in snapshot.waiting]
    queue = [snapshot.waiting[i] for i in sorted(range(len(scores)), key=scores.__getitem__)]
    queue.sort(key=attrgetter("priority"), reverse=True)
    by_owner, by_cluster, code, facts = dict[int, float](), dict[int, float](), "no_cards", dict[str, int | str]()
    for position, job in enumerate(queue, start=1):
        request = job.request
        cost = costs.get(id(request))
        if cost is None:
            cost = costs[id(request)] = cost_per_hour(job)
        by_owner[job.owner] = by_owner.get(job.owner, 0.0) + cost
        by_cluster[job.cluster] = by_cluster.get(job.cluster, 0.0) + cost
        waits[job.job] = Wait(code, facts, position, None if job.runtime is None else now + job.runtime)
    return waits


def milliseconds(function: Callable[[Snapshot, float], object], picture: Snapshot) -> tuple[float, float]:
    """(elapsed, CPU of this thread) of one call."""
    began, cpu = time.perf_counter(), time.thread_time()
    function(picture, NOW)
    return (time.perf_counter() - began) * 1000, (time.thread_time() - cpu) * 1000


def measure(waiting: int = 10_000, cards: int = 256, rounds: int = 9) -> list[dict[str, float | str]]:
    """Milliseconds per pass and of the floor for each case."""
    rows: list[dict[str, float | str]] = []
    for case, full, lends in (("empty", False, False), ("full", True, False), ("lends", True, True)):
        picture = snapshot(waiting, cards, full=full, lends=lends)
        result = plan(picture, NOW)
        pairs = [(milliseconds(plan, picture), milliseconds(uncollected(floor), picture)) for _ in range(rounds)]
        times, cpu = zip(*(ours for ours, _ in pairs), strict=True)
        lowest, lowest_cpu = zip(*(least for _, least in pairs), strict=True)
        rows.append(
            {
                "case": case,
                "started": len(result.assignments),
                "preempted": len(result.preemptions),
                "least_ms": min(times),
                "median_ms": statistics.median(times),
                "worst_ms": max(times),
                "cpu_ms": statistics.median(cpu),
                "floor_ms": statistics.median(lowest),
                "ratio": statistics.median(cpu) / statistics.median(lowest_cpu),
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    waiting, cards = (int(a) for a in (sys.argv[1:] + ["10000", "256"][len(sys.argv) - 1 :])[:2])
    print(f"plan(): {waiting} waiting, {cards} GPUs; the ratio compares medians of CPU time")
    for row in measure(waiting, cards):
        print(
            f"  {row['case']:<5} cluster: {row['started']:>4} started, {row['preempted']:>3} preempted, "
            f"least {row['least_ms']:.1f} ms, median {row['median_ms']:.1f} ms, worst {row['worst_ms']:.1f} ms, "
            f"CPU {row['cpu_ms']:.1f} ms, floor {row['floor_ms']:.1f} ms, {row['ratio']:.1f} times the floor"
        )


if __name__ == "__main__":
    main()
