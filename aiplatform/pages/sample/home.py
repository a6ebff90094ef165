"""The section of the home page about the sample project, while it is created or removed and once it is ready."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.guide import Samples
from aiplatform.pages.home.sections import Section
from aiplatform.pages.sample import progress


def sample_progress(user: User) -> dict[str, Any] | None:
    """Return the project with its steps: {project, steps}; None without one."""
    project = progress.load(user)
    return {"project": project, "steps": progress.steps(project)} if project else None


def samples_of(user: User) -> Samples:
    """Return the objects of the user's sample project, which complete no step of the first-run guide."""
    project = progress.find(user)
    if project is None:
        return Samples()
    jobs = (project.job_id, project.service.job_id if project.service else None)
    return Samples(
        *({pk for pk in ids if pk is not None} for ids in ((project.dataset_id,), (project.model_id,), jobs))
    )


SAMPLE = Section(
    "sample", "sample/_progress.html", sample_progress, needs=Action.DATASETS_CREATE, order=15, column="top", live=True
)
