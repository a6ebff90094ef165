"""What pages, charts and scripts read of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from aiplatform.lib.secret_names import mask_params
from training.presets.catalog import PRESETS
from training.studies import budget, decider, objectives, problems, space, values
from training.studies.models import WAITING, Study, Trial
from workers.core.models import HAS_VALUE, Curve

S, T = Study.State, Trial.State


def fixed(study: Study) -> dict[str, Any]:
    """Parameters that are the same for all trials."""
    params = study.request.get("params", {})
    return dict(params) if study.preset else mask_params(params)


def so_far(study: Study, trials: Sequence[Trial]) -> dict[int, float]:
    """What trials that go on have reached, by number: the newest value of the first objective."""
    key = objectives.of_rows(study.objectives)[0].key
    live = {row.training.job_id: row for row in trials if row.state == T.RUNNING and row.training}
    rows = Curve.objects.filter(HAS_VALUE, attempt__job__in=live, key=key).select_related("attempt")
    return {live[curve.attempt.job_id].number: curve.value for curve in rows.order_by("attempt__number")}


def trial_rows(study: Study, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Trials as rows of a table and points of charts."""
    current = so_far(study, trials)
    best = budget.best_of(study, trials)
    front = {row.number for row in budget.front(study, trials)} if len(study.objectives) > 1 else set()
    return [
        {
            "number": row.number, "state": row.shown_state, "state_label": row.shown_state_label,
            "training": row.training_id, "job_state": row.training.job.state if row.training else "",
            "training_name": row.training.job.name if row.training else "",
            "params": row.params, "values": row.values, "so_far": current.get(row.number),
            "sentence": str(row.message), "enqueued": row.enqueued,
            "best": row.number in front if front else best is not None and best.number == row.number,
            "created_at": row.created_at, "told_at": row.told_at,
        }
        for row in trials
    ]  # fmt: skip


def curves_of(study: Study, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """The curve of the first objective of each trial, thinned."""
    key = objectives.of_rows(study.objectives)[0].key
    curves = []
    for row in trials:
        own = row.points
        if row.state == T.RUNNING and row.training:
            own = values.thinned(values.points(row.training, key))
        curves.append({"number": row.number, "state": row.shown_state, "points": own})
    return curves


def counts(trials: Sequence[Trial]) -> dict[str, int]:
    """Return the number of trials in each state that users see."""
    return {state: sum(row.shown_state == state for row in trials) for state in (WAITING, *T.values)}


def state_counts(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    """(label, number of trials) of the states that any trial is in, in the order of their first trials."""
    return list(Counter(row.shown_state_label for row in trials).items())


def importance(study: Study, *, objective: int = 0, evaluator: str = decider.PED_ANOVA) -> dict[str, float]:
    """How much each parameter mattered, the most first; {} while too few trials say so."""
    trials = study.trials.all()
    return decider.importance(
        problems.for_study(study), problems.pasts(trials), objective=objective, evaluator=evaluator
    )


def used(study: Study) -> dict[str, Any]:
    """What it used of its limits."""
    return {"hours": round(budget.hours(study), 4)}


def best_command(study: Study, trial: Trial | None) -> dict[str, Any]:
    """All parameters of a trial, fixed and chosen ones."""
    return {} if trial is None else {**fixed(study), **trial.params}


def preset_title(study: Study) -> str:
    preset = PRESETS.get(study.preset)
    return preset.title if preset else ""


def ranges(study: Study) -> list[space.Range]:
    return space.of_rows(study.space)


def goals(study: Study) -> list[dict[str, Any]]:
    return [asdict(objective) for objective in objectives.of_rows(study.objectives)]
