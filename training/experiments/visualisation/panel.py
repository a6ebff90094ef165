"""The part of a job's metrics that leads to what it shows besides curves."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training.experiments.visualisation import runs
from workers.core.models import Job
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel
from workers.jobs.output import media


def shown(job: Job, user: User) -> dict[str, Any] | None:
    """Context of `visualisation/_panel.html`; None of a job that shows nothing else."""
    kinds = media.kinds_of([job])
    found = [(view, kinds[view.kind]) for view in runs.VIEWS if kinds.get(view.kind)]
    return {"views": found} if found else None


PANEL = Panel("visualisation", "visualisation/_panel.html", shown, 20, job_tabs.METRICS)
