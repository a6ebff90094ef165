"""The score threshold of a version, from its newest evaluation or chosen by a user there."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.models import User
from aiplatform.lib.numbers import finite
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion

LOOKED_AT = 5  # evaluations: those of some tasks know no such score


@dataclass(frozen=True)
class BestScore:
    """A score within 0..1, and the evaluation where predictions above it had the best F1, or a user chose it."""

    score: float
    evaluation: Evaluation


def for_version(version: ModelVersion, *, by: User) -> BestScore | None:
    """Return the threshold of the newest evaluation that this user may see.

    A version made by a conversion that has none takes that of the version it was made from: a conversion is refused
    where the two answer differently. None for a version that was not evaluated, or by evaluations without such a score.
    """
    best = _newest(version, by)
    if best is None and version.source == "convert" and version.parent is not None:
        return _newest(version.parent, by)
    return best


def _newest(version: ModelVersion, by: User) -> BestScore | None:
    rows = version.evaluations.visible_to(by).filter(published_attempt__gt=0, is_scripted=False).select_related("job")
    for evaluation in rows.order_by("-pk")[:LOOKED_AT]:
        chosen = evaluation.chosen_threshold
        score = finite(evaluation.metrics.get("threshold") if chosen is None else chosen)
        if score is not None and 0 < score < 1:
            return BestScore(score, evaluation)
    return None


def default_score(version: ModelVersion, *, by: User) -> float | None:
    """Return the score that applies to a request without one; None leaves it to the model.

    Only where callers choose the lowest score of an answer; elsewhere all answers are given, or the model decides.
    """
    task = TASKS.get(version.task)
    best = for_version(version, by=by) if task is not None and task.pages.threshold else None
    return best.score if best else None
