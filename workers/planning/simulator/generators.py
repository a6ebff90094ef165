"""Workloads made from a seed: a lab's week with environments by day, and a stream of gangs. Pure.

Sources of the figures: the AIStation case (32 cards, 50 developers, ImageNet + ResNet-50 in 12 h on one card;
eight environments on a card keep it 80 % busy, a training 90 %), and the shape of published traces of GPU
clusters (most jobs small and short, a long tail, few people send most of the work).
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from workers.core.count_classes import ENVIRONMENT
from workers.planning.planner.snapshot import URGENT
from workers.planning.simulator.workloads import Limits, Setup, Work, Workload

HOUR, DAY = 3600.0, 86_400.0
USERS = 50
SIZES = ((1, 60), (2, 15), (4, 13), (8, 10), (16, 2))
"""Cards of a gang and how many of 100 jobs ask for them."""
MEDIAN_H, SIGMA, CAP_H = 2.0, 1.2, 48.0
ZIPF = 0.8
URGENT_PART = 0.10
OPENS_H, CLOSES_H = 9, 21
TRAINING_S = 12 * HOUR
BACKLOG, A_DAY = 96, 62
"""Trainings that wait at the start, and that are sent each day: more than 32 cards can do."""


def aistation(setup: Setup, *, days: float, seed: int) -> Workload:
    """Environments of 50 people from 09 to 21 on weekdays, an eighth of a card each, and an endless queue of
    12-hour trainings on one card.

    The clusters are guaranteed what their people need at once: *development* the cards that the environments
    fill, *training* the rest; training borrows what development leaves idle. The first week warms up and is
    not counted.
    """
    rng = random.Random(seed)  # noqa: S311 - a workload, no secret
    cards, need = setup.nodes * setup.cards, -(-USERS // 8)
    clusters = (Limits("development", need), Limits("training", cards - need, borrows=True))
    setup = replace(setup, clusters=clusters, use={ENVIRONMENT.name: 0.8, "training": 0.9})
    works = []
    for day in range(math.ceil(days)):
        if day % 7 < 5:
            opens, closes = day * DAY + OPENS_H * HOUR, day * DAY + CLOSES_H * HOUR
            works += [_environment(user, opens, closes) for user in range(USERS)]
        works += [_training(day * DAY + n * DAY / A_DAY, rng) for n in range(A_DAY)]
    works += [_training(0.0, rng) for _ in range(BACKLOG)]
    works.sort(key=lambda work: work.arrival_s)
    return Workload("aistation", tuple(works), setup, days, counted_from_s=7 * DAY if days > 7 else 0.0)


def _environment(user: int, opens: float, closes: float) -> Work:
    span = closes - opens
    return Work(opens, f"user{user}", span, span, "development", shares=1, kind=ENVIRONMENT.name)


def _training(arrival_s: float, rng: random.Random) -> Work:
    user = f"user{rng.randrange(USERS)}"
    return Work(arrival_s, user, TRAINING_S, TRAINING_S, "training", preemptible=True)


def gangs(setup: Setup, *, days: float, seed: int, load: float = 0.80) -> Workload:
    """Jobs of 1 to 16 cards by a Poisson process that asks for `load` of the cards.

    Run times are lognormal (median 2 h, sigma 1.2, at most 48 h), limits 1 to 3 times as long; 50 people send by
    Zipf 0.8; a tenth is urgent, everything else may be preempted. The first week warms up and is not counted.
    """
    rng = random.Random(seed)  # noqa: S311 - a workload, no secret
    people = [1.0 / (rank + 1) ** ZIPF for rank in range(USERS)]
    sizes, parts = [size for size, _ in SIZES], [part for _, part in SIZES]
    mean_cards = sum(size * part for size, part in SIZES) / sum(parts)
    rate = load * setup.nodes * setup.cards / (mean_cards * _mean_hours()) / HOUR
    works, moment = [], rng.expovariate(rate)
    while moment < days * DAY:
        size = rng.choices(sizes, parts)[0]
        runtime = min(CAP_H, rng.lognormvariate(math.log(MEDIAN_H), SIGMA)) * HOUR
        nodes = -(-size // setup.cards)
        urgent = rng.random() < URGENT_PART
        works.append(
            Work(
                moment,
                f"user{rng.choices(range(USERS), people)[0]}",
                runtime,
                runtime * rng.uniform(1.0, 3.0),
                nodes=nodes,
                devices=size // nodes,
                priority=URGENT if urgent else 0,
                preemptible=not urgent,
            )
        )
        moment += rng.expovariate(rate)
    return Workload("gangs", tuple(works), setup, days, counted_from_s=7 * DAY if days > 7 else 0.0)


def _mean_hours() -> float:
    """Mean of the capped lognormal, in closed form."""
    mu, cap = math.log(MEDIAN_H), math.log(CAP_H)

    def below(x: float) -> float:
        return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))

    body = math.exp(mu + SIGMA**2 / 2) * below((cap - mu - SIGMA**2) / SIGMA)
    return body + CAP_H * (1.0 - below((cap - mu) / SIGMA))


GENERATORS = ("aistation", "gangs")
