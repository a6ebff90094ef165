"""The scheduler's policy on both workloads: `python -m tests.bench.simulate [weeks] [seeds]`.

The planner under the virtual clock beside what most queues do (gangs) and beside the published plan of the
AIStation case. Figures of gangs are the median over the seeds, the worst in brackets.
"""

from __future__ import annotations

import statistics
import sys

from workers.planning.simulator.figures import Figures, figures
from workers.planning.simulator.generators import aistation, gangs
from workers.planning.simulator.policies import POLICIES
from workers.planning.simulator.simulate import simulate
from workers.planning.simulator.workloads import Setup


def week(overhead_s: float, weeks: int, policy: str) -> Figures:
    """The AIStation case with a start overhead, paid again after a preemption."""
    setup = Setup(start_overhead_s=overhead_s, restart_overhead_s=max(30.0, overhead_s))
    return figures(simulate(aistation(setup, days=7 * weeks, seed=1), POLICIES[policy]), policy)


def stream(load: float, weeks: int, seeds: int, policy: str) -> list[Figures]:
    """One row for each seed."""
    works = [gangs(Setup(), days=7 * weeks, seed=seed, load=load) for seed in range(1, seeds + 1)]
    return [figures(simulate(workload, POLICIES[policy]), policy) for workload in works]


def main() -> None:
    """Print the table."""
    weeks, seeds = (int(a) for a in (sys.argv[1:] + ["12", "3"][len(sys.argv) - 1 :])[:2])
    for overhead_s in (10.0, 600.0):
        for policy in ("ours", "halves"):
            row = week(overhead_s, weeks, policy)
            print(
                f"  aistation, {overhead_s:3.0f} s, {policy:<10}: {row.jobs_per_week:.1f} trainings a week, "
                f"{row.in_use_hours_per_card_day:.2f} h, {100 * row.utilisation:.1f} % used, "
                f"environments wait at most {60 * (row.environment_wait_max_hours or 0.0):.1f} min"
            )
    for load in (0.80, 0.95):
        for policy in ("ours", "skip-ahead"):
            rows = stream(load, weeks, seeds, policy)
            large = [row.wait_p95_hours["8+"] for row in rows]
            urgent = [60 * (row.urgent_wait_p95_hours or 0.0) for row in rows]
            print(
                f"  gangs, load {load:.2f}, {policy:<10}: 8+ cards wait p95 {statistics.median(large):.1f} h "
                f"({max(large):.1f}), urgent p95 {statistics.median(urgent):.1f} min ({max(urgent):.1f}), "
                f"{statistics.median(row.preemptions_per_week for row in rows):.0f} preemptions a week"
            )


if __name__ == "__main__":
    main()
