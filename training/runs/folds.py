"""Cross-validation: a training for each part of the data, scored on that part, and what all of them reached."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid
from training.presets import groups
from training.runs.models import TrainingJob
from workers.jobs.arrays import Indices


@dataclass(frozen=True)
class Figure:
    """One figure over the folds that have it; `spread` is the standard deviation of a sample, None of a single one."""

    key: str
    mean: float
    spread: float | None
    folds: int


def check(params: Mapping[str, Any]) -> None:
    """Refuse parameters that are no valid cross-validation.

    Raises:
        Invalid: a single fold, a fold that is none of them, or groups by no regular expression.
    """
    folds, fold = params.get("folds", 0), params.get("fold", 0)
    if folds == 1:
        raise Invalid(_("One fold leaves no training data. Choose 2 to 20, or 0 for none."), field="param_folds")
    if fold > folds:
        raise Invalid(
            _("Fold %(fold)s of %(folds)s does not exist.") % {"fold": fold, "folds": folds}, field="param_fold"
        )
    group_by = params.get("group_by", "")
    if group_by in ("", groups.FOLDER):
        return
    if len(group_by) > groups.MAX_LENGTH:
        message = _("A regular expression for image groups can have at most %(most)s characters.")
        raise Invalid(message % {"most": groups.MAX_LENGTH}, field="param_group_by")
    try:
        re.compile(group_by)
    except (re.error, OverflowError, RecursionError) as exc:
        message = _("%(words)s is neither folder nor a regular expression: %(why)s.")
        raise Invalid(message % {"words": group_by, "why": exc}, field="param_group_by") from None


def fold_indices(params: Mapping[str, Any]) -> Indices | None:
    """Return the folds that each require a training; None where a single training suffices."""
    folds = params.get("folds", 0)
    return Indices(f"1-{folds}", tuple(range(1, folds + 1)), None) if folds and not params.get("fold") else None


def together(training: TrainingJob, *, user: User) -> Sequence[TrainingJob]:
    """The trainings of one cross-validation that this person may see, in the order of their folds."""
    if not training.params.get("folds") or training.job.array_id is None:
        return []
    rows = TrainingJob.objects.visible_to(user).filter(job__array=training.job.array_id).select_related("job")
    return list(rows.order_by("job__array_index"))


def figures(trainings: Sequence[TrainingJob]) -> list[Figure]:
    """Return mean and standard deviation of all metrics of completed trainings, without metrics of single classes."""
    values_by_key: dict[str, list[float]] = {}
    for training in trainings:
        for key, value in training.metrics.items():
            if key.startswith("val/") and key.count("/") == 1 and isinstance(value, int | float):
                values_by_key.setdefault(key, []).append(float(value))
    return [
        Figure(key, fmean(values), stdev(values) if len(values) > 1 else None, len(values))
        for key, values in values_by_key.items()
    ]
