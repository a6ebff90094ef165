"""What the page of a job about a model says of its end: the version that it made or measured, or why there is none."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from accounts.models import User
from inference.registry import model_jobs
from inference.registry.models import ModelTask, ModelVersion
from workers.core.models import Job
from workers.jobs.job_page import Panel


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None while nothing is known of its end, and where this person may not see the model."""
    task = ModelTask.objects.filter(job=job).first() if job.kind == model_jobs.KIND else None
    if task is None or task.act == ModelTask.Act.TRY:  # which has a panel of its own
        return None
    if task.message and task.made_id is None:
        name = job.spec.get("name", "")
        form = (
            f"{reverse('inference:model-upload')}?{urlencode({'name': name})}" if name else _page(job.spec.get("model"))
        )
        return {"message": task.message, "is_import": task.act in IMPORTS, "again": form}
    shown = task.made_id or (task.version_id if job.is_final else None)
    version = ModelVersion.objects.visible_to(user).select_related("model").filter(pk=shown or 0).first()
    if version is None:
        return None
    return {"version": str(version), "url": f"{_page(version.model_id)}?version={version.number}"}


def _page(model: int | None) -> str:
    return reverse("inference:model-detail", args=[model]) if model else reverse("inference:model-list")


IMPORTS = (ModelTask.Act.CONVERT, ModelTask.Act.IMPORT)
PANEL = Panel("model-task", "inference/_model_task_panel.html", context, 2)
