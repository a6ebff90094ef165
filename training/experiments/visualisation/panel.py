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
    """Return the context of `visualisation/_panel.html`; None for a job without such media."""
    kinds = media.kinds_of([job])
    views = [(view, kinds[view.kind]) for view in runs.VIEWS if kinds.get(view.kind)]
    return {"views": views} if views else None


PANEL = Panel("visualisation", "visualisation/_panel.html", shown, 20, job_tabs.METRICS)
