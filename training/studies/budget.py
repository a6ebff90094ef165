"""What a study may use: trials, time, card-hours; and whether it is good enough already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import FloatField, Max, Min
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from training.studies import objectives, space
from training.studies.models import Study, Trial
from workers.core.clock import now
from workers.core.models import Attempt

NOTHING = Message()


def exhausted(study: Study, trials: Sequence[Trial]) -> Message:
    """Return why no further trial starts, regardless of the running ones; an empty message if one may start."""
    if study.target is not None and (best := best_of(study, trials)) is not None:
        goal = objectives.of_rows(study.objectives)[0]
        if goal.reaches(best.values[0], study.target):
            return wording.message("study.target_reached", number=best.number, value=best.values[0])
    if study.time_limit is not None and now() - study.started_at >= study.time_limit:
        return wording.message("study.time_used", hours=study.time_limit.total_seconds() / 3600)
    if study.hours_limit is not None and hours(study) >= study.hours_limit:
        return wording.message("study.hours_used", hours=study.hours_limit)
    if len(trials) >= most(study):
        return wording.message("study.all_trials", count=len(trials))
    return NOTHING


def most(study: Study) -> int:
    """How many trials it makes at most: a grid has no more than its points."""
    if study.sampler == Study.Sampler.GRID:
        by_hand = study.trials.filter(enqueued=True).count() + len(study.enqueued)
        return min(study.max_trials, space.grid_size(space.of_rows(study.space)) + by_hand)
    return study.max_trials


def best_of(study: Study, trials: Sequence[Trial]) -> Trial | None:
    """The completed trial with the best value of the first objective."""
    goal = objectives.of_rows(study.objectives)[0]
    done = [row for row in trials if row.state == Trial.State.COMPLETE and row.values]
    best = None
    for row in done:
        if best is None or goal.better(row.values[0], best.values[0]):
            best = row
    return best


def best_values(studies: Iterable[Study]) -> dict[int, float]:
    """The best value of the first objective by study, of those with a completed trial; one query."""
    goals = {study.pk: objectives.of_rows(study.objectives)[0] for study in studies}
    value = Cast(KT("values__0"), FloatField())
    rows = Trial.objects.filter(study__in=goals, state=Trial.State.COMPLETE).order_by()
    extremes = rows.values_list("study").annotate(low=Min(value), high=Max(value))
    return {
        pk: low if goals[pk].direction == objectives.MINIMIZE else high for pk, low, high in extremes if low is not None
    }


def front(study: Study, trials: Sequence[Trial]) -> list[Trial]:
    """Return the Pareto front of several objectives: the completed trials that no other trial dominates."""
    goals = objectives.of_rows(study.objectives)
    completed = [row for row in trials if row.state == Trial.State.COMPLETE and len(row.values) == len(goals)]

    def is_dominated(trial: Trial, other: Trial) -> bool:
        pairs = list(zip(goals, trial.values, other.values, strict=True))
        return all(not goal.better(a, b) for goal, a, b in pairs) and any(goal.better(b, a) for goal, a, b in pairs)

    return [trial for trial in completed if not any(is_dominated(trial, other) for other in completed)]


def hours(study: Study) -> float:
    """Card-hours that its trials used so far; core-hours where they ask for no cards."""
    moment, total = now(), 0.0
    rows = Attempt.objects.filter(job__training__trial__study=study, started_at__isnull=False)
    columns = ("started_at", "ended_at", "job__nodes", "job__gpus_per_node", "job__cpus")
    for began, ended, nodes, cards, cores in rows.values_list(*columns):
        units = nodes * (cards or cores)
        total += max(0.0, ((ended or moment) - began).total_seconds()) / 3600 * units
    return total
