"""What a job's page offers to do with a model among its outputs."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from accounts.permissions import Action
from aiplatform.lib.files import walk_beneath
from inference.services.importing import MODEL, TORCH
from workers.execution import earlier_outputs
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel
from workers.models import Job

LOOKED_AT = 5000  # files


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None while the job is at work, where it left no weights or is in the registry, and for people who may not."""
    if (
        not job.is_final
        or job.model_versions.exists()
        or not user.can(Action.MODELS_MANAGE)
        or not user.can(Action.JOBS_VIEW)
    ):
        return None
    outputs = earlier_outputs.folder_of(job)
    if outputs is None:
        return None
    names = (name for _place, name in zip(range(LOOKED_AT), walk_beneath(outputs, lenient=True), strict=False))
    return {} if any(name.lower().endswith((*MODEL, *TORCH)) for name in names) else None


PANEL = Panel("model", "inference/_model_of_outputs.html", context, 61, job_tabs.FILES)
