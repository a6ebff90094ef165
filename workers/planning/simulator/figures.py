"""What a simulation comes to: use, throughput, waiting, preemptions, fairness. Pure.

Everything is counted between `counted_from_s` and `until_s` of the workload: cards and ends by the moment,
waits for the jobs that arrived in it, however long after it they ran.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

from workers.core.count_classes import ENVIRONMENT
from workers.planning.planner.snapshot import URGENT
from workers.planning.simulator.simulate import Outcome
from workers.planning.simulator.workloads import Work

HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0
CLASSES = (("1", 0.0, 2.0), ("2-3", 2.0, 4.0), ("4-7", 4.0, 8.0), ("8-15", 8.0, 16.0), ("16+", 16.0, math.inf))
"""Name, fewest and one more than the most cards of a size class. Shares of a card count as size 1."""
LARGE = "8+"
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table. Hours, and parts of 1; a class without jobs is left out.

    `utilisation` counts work that was kept, weighed by how busy its kind keeps a card. `in_use_hours_per_card_day`
    counts the time in which anybody worked on a card, kept or lost, without starting up. A job's wait is all its
    time in the queue, again after each preemption included; `first_wait_p95_hours` ends at its first start.
    `fairness` is Jain's index over people of the part of their jobs' time that was not waiting: 1 is equal.
    """

    policy: str
    days: float
    jobs: int
    jobs_per_week: float
    ended_per_week_by_kind: dict[str, float]
    utilisation: float
    in_use_hours_per_card_day: float
    card_hours_per_day: float
    wait_p50_hours: dict[str, float]
    wait_p95_hours: dict[str, float]
    wait_max_hours: dict[str, float]
    first_wait_p95_hours: dict[str, float]
    urgent_wait_p95_hours: float | None
    environment_wait_max_hours: float | None
    preemptions_per_week: float
    most_preemptions_of_a_job: int
    lost_card_hours_per_week: float
    fairness: float
    never_started: int

    def as_json(self) -> dict[str, object]:
        """Plain data with rounded numbers."""
        return {key: _rounded(value) for key, value in asdict(self).items()}


def figures(outcome: Outcome, policy: str = "plan") -> Figures:
    """The figures of an outcome."""
    workload = outcome.workload
    works, setup = workload.works, workload.setup
    begin, until = workload.counted_from_s, workload.until_s
    counted_s = max(until - begin, 1.0)
    cards, weeks, days = setup.nodes * setup.cards, counted_s / WEEK, counted_s / DAY

    ended: dict[str, int] = defaultdict(int)
    useful = lost = held = 0.0
    first: dict[int, float] = {}
    queued: dict[int, float] = {}
    since: dict[int, float] = {}
    by_card: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for span in sorted(outcome.spans, key=lambda s: (s.began, s.job)):
        work, job = works[span.job], span.job
        first.setdefault(job, span.began - work.arrival_s)
        queued[job] = queued.get(job, 0.0) + span.began - since.get(job, work.arrival_s)
        since[job] = span.ended
        useful += work.cards * setup.use.get(work.kind, 1.0) * _within(span.worked_from, span.worked_to, begin, until)
        lost += work.cards * _within(span.worked_to, span.ended, begin, until)
        held += work.cards * _within(span.began, span.ended, begin, until)
        for device, _ in span.held:
            by_card[device].append((max(span.worked_from, begin), min(span.ended, until)))
        if not span.preempted and begin <= span.ended < until:
            ended[work.kind] += 1
    in_use = sum(_union(spans) for spans in by_card.values())
    arrived = [job for job in queued if begin <= works[job].arrival_s < until]

    def waits(times: dict[int, float], chosen: Callable[[Work], bool]) -> list[float]:
        return sorted(times[job] / HOUR for job in arrived if chosen(works[job]))

    def by_size(times: dict[int, float]) -> dict[str, list[float]]:
        by_class = {name: waits(times, lambda w: low <= w.cards < high) for name, low, high in CLASSES}  # noqa: B023 - called within its own round
        by_class |= {LARGE: waits(times, lambda w: w.cards >= 8), "all": waits(times, lambda w: True)}
        return {name: values for name, values in by_class.items() if values}

    classes = by_size(queued)
    urgent = waits(queued, lambda w: w.priority >= URGENT)
    environments = waits(queued, lambda w: w.counts_as == ENVIRONMENT.name)
    return Figures(
        policy=policy,
        days=days,
        jobs=len(arrived),
        jobs_per_week=sum(n for kind, n in ended.items() if kind != ENVIRONMENT.name) / weeks,
        ended_per_week_by_kind={kind: n / weeks for kind, n in sorted(ended.items())},
        utilisation=useful / (cards * counted_s),
        in_use_hours_per_card_day=in_use / HOUR / cards / days,
        card_hours_per_day=held / HOUR / days,
        wait_p50_hours={name: quantile(w, 0.5) for name, w in classes.items()},
        wait_p95_hours={name: quantile(w, 0.95) for name, w in classes.items()},
        wait_max_hours={name: w[-1] for name, w in classes.items()},
        first_wait_p95_hours={name: quantile(w, 0.95) for name, w in by_size(first).items()},
        urgent_wait_p95_hours=quantile(urgent, 0.95) if urgent else None,
        environment_wait_max_hours=environments[-1] if environments else None,
        preemptions_per_week=sum(begin <= moment < until for moment, _ in outcome.preemptions) / weeks,
        most_preemptions_of_a_job=max(Counter(job for _, job in outcome.preemptions).values(), default=0),
        lost_card_hours_per_week=lost / HOUR / weeks,
        fairness=_fairness(arrived, queued, outcome),
        never_started=len(outcome.never_started),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of the ordered values do not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index: 1 where all are equal, 1/n where one has everything."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _fairness(arrived: Iterable[int], queued: dict[int, float], outcome: Outcome) -> float:
    ran: dict[str, float] = defaultdict(float)
    present_s: dict[str, float] = defaultdict(float)
    for job in arrived:
        work = outcome.workload.works[job]
        ran[work.user] += work.runtime_s
        present_s[work.user] += work.runtime_s + queued[job]
    return jain([ran[user] / present_s[user] for user in ran])


def _within(begin: float, end: float, low: float, high: float) -> float:
    return max(0.0, min(end, high) - max(begin, low))


def _union(spans: list[tuple[float, float]]) -> float:
    """Seconds covered by at least one span."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        if end > reached and end > begin:
            total += end - max(begin, reached)
            reached = end
    return total


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return value
