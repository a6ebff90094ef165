"""What the page of a training in a cross-validation says of all its folds."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training.catalog import metric_labels
from training.runs import folds
from workers.core.models import Job
from workers.jobs.job_page import Panel


def context(job: Job, user: User) -> dict[str, Any] | None:
    """Return the context of the panel; None if the job is no fold."""
    training = getattr(job, "training", None)
    trainings = folds.together(training, user=user) if training is not None else []
    if not trainings:
        return None
    figures = folds.figures(trainings)
    columns = [(figure.key, metric_labels.word(figure.key)) for figure in figures[:MAX_METRICS]]
    rows = [(row, [row.metrics.get(key) for key, _word in columns]) for row in trainings]
    return {"rows": rows, "figures": figures[:MAX_METRICS], "columns": columns, "own": job.pk}


MAX_METRICS = 2  # figures that a table shows
PANEL = Panel("folds", "training/_folds_panel.html", context, 5)
