"""Progress of a training and the time that each of its phases still takes, from what was measured so far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import phases, points

if TYPE_CHECKING:
    from .trainer import Trainer

EXPORT_S = 4.0  # what writing and verifying the exported model takes on a free core; it waits less for cores than steps


def learned_s(trainer: Trainer) -> float:
    """Seconds spent learning, over all attempts; what the budget counts."""
    return trainer.phases.seconds(phases.LEARNING)


def progress(trainer: Trainer) -> float:
    """0..1 (or more): the part of the steps that is done or the part of the budget that is used, whichever is more."""
    return trainer.budget.progress(trainer.at.step, learned_s(trainer))


def counted(trainer: Trainer) -> dict[str, float]:
    """The counter of the learning where steps decide, and its share where the training has a known end."""
    budget, step = trainer.budget, trainer.at.step
    share = min(progress(trainer), phases.MAX_SHARE)
    if budget.last_step == math.inf:
        if not budget.budget_s or not step:
            return {}
        return {"progress": round(share, 4)}
    shown: dict[str, float] = {"phase_done": step, "phase_total": math.ceil(budget.last_step)}
    return shown | ({"progress": round(share, 4)} if step else {})


def score_s(trainer: Trainer) -> float:
    """What scoring all images takes, by the last time; before the first one, by what a step takes."""
    return trainer.at.last_eval_s or trainer.task.rows_scored / trainer.batch_size * trainer.step_s


def export_s(trainer: Trainer) -> float:
    """What writing the model takes, the last checkpoint included."""
    return trainer.at.last_checkpoint_s + EXPORT_S * trainer.slowdown**0.75


def left(trainer: Trainer) -> dict[str, float] | None:
    """Return the remaining seconds of each phase, learning first; None while they are unknown."""
    at = trainer.at
    learning_s = trainer.budget.left_s(at.step, learned_s(trainer), trainer.pace.step_s)
    if learning_s is None:
        return None
    share = progress(trainer)
    scoring_s = points.left_s(share, spent_s=at.eval_s, point_s=score_s(trainer) * (at.scored_part or 1.0))
    if not trainer.params["eval_share"]:
        scoring_s = 0.0
    return {
        phases.LEARNING: learning_s,
        phases.SCORING: scoring_s + score_s(trainer),
        phases.EXPORTING: export_s(trainer),
    }


def whole_s(trainer: Trainer) -> float:
    """Return the total duration of the training in seconds; infinity if it is unknown."""
    learning_s = trainer.budget.left_s(trainer.at.step, learned_s(trainer), trainer.pace.step_s)
    return math.inf if learning_s is None else trainer.used_s() + learning_s + score_s(trainer) + export_s(trainer)
