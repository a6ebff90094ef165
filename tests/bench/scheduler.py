"""How long one pass takes: python -m tests.bench.scheduler [waiting] [cards].

10,000 waiting jobs of mixed sizes on 256 cards: empty, full, and full of preemptible and borrowed work among
four clusters with guarantees.
"""

import random
import statistics
import sys
import time

from workers.planner.plan import plan
from workers.planner.snapshot import Cluster, Device, Node, Quota, Request, Running, Snapshot, Waiting

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


def measure(waiting: int = 10_000, cards: int = 256, rounds: int = 9) -> list[dict[str, float | str]]:
    """Milliseconds per pass for each case."""
    rows: list[dict[str, float | str]] = []
    for case, full, lends in (("empty", False, False), ("full", True, False), ("lends", True, True)):
        picture = snapshot(waiting, cards, full=full, lends=lends)
        times = []
        for _ in range(rounds):
            begun = time.perf_counter()
            result = plan(picture, NOW)
            times.append((time.perf_counter() - begun) * 1000)
        rows.append(
            {
                "case": case,
                "started": len(result.assignments),
                "preempted": len(result.preemptions),
                "least_ms": min(times),
                "median_ms": statistics.median(times),
                "worst_ms": max(times),
            }
        )
    return rows


def main() -> None:
    """Print the table."""
    waiting, cards = (int(a) for a in (sys.argv[1:] + ["10000", "256"][len(sys.argv) - 1 :])[:2])
    print(f"plan(): {waiting} waiting, {cards} cards")
    for row in measure(waiting, cards):
        print(
            f"  {row['case']:<5} cluster: {row['started']:>4} started, {row['preempted']:>3} preempted, "
            f"least {row['least_ms']:.1f} ms, median {row['median_ms']:.1f} ms, worst {row['worst_ms']:.1f} ms"
        )


if __name__ == "__main__":
    main()
