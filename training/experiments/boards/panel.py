"""The part of a job's page that leads to TensorBoard."""

from __future__ import annotations

from typing import Any

from accounts.access.permissions import Action
from accounts.models import User
from training.experiments.boards import services
from training.experiments.boards.models import Board
from workers.access.proxy import addresses
from workers.core.models import Job


def shown(job: Job, user: User) -> dict[str, Any] | None:
    """Context of `boards/_panel.html`; None for jobs without event files, and for people who may not read them."""
    if job.owner_id != user.pk or job.kind == services.KIND or not addresses.are_ports_enabled():
        return None
    if not user.can(Action.JOBS_SUBMIT) or not job.attempt_number or services.folder(job) is None:
        return None
    live = Board.objects.live_of(job).select_related("job").first()
    return {"board": live}
