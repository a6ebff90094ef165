"""What a job's page offers to do with a model among its outputs."""

from __future__ import annotations

import os
import time
from itertools import islice
from pathlib import Path
from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import trees
from aiplatform.lib.files import OutsideRoot
from inference.registry.imports import MODEL, TORCH
from workers.core.models import Job
from workers.execution import earlier_outputs
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel

LOOKED_AT, LOOK_S = 5000, 0.5  # files, and seconds


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
    return {} if _holds_weights(outputs) else None


def _holds_weights(outputs: Path) -> bool:
    """Return whether there are weights among the files that are read; true if time runs out."""
    wanted = tuple(os.fsencode(suffix) for suffix in (*MODEL, *TORCH))
    try:
        with trees.opened(outputs) as folder:
            walk = trees.walk(folder, until=time.monotonic() + LOOK_S)
            return any(name.lower().endswith(wanted) for _at, name, _about in islice(walk, LOOKED_AT))
    except trees.TooLong:
        return True
    except (OSError, OutsideRoot):
        return False


PANEL = Panel("model", "inference/_model_of_outputs.html", context, 61, job_tabs.FILES)
