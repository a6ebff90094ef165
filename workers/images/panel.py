"""The image of a job, as a part of the job's page."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from accounts.access.permissions import Action
from accounts.models import User
from workers.core import held_back, wait_reasons
from workers.core.models import Job
from workers.images.models import Image, ImageUse
from workers.images.services import saving
from workers.images.store import boxes


def shown(job: Job, user: User) -> dict[str, Any] | None:
    """Content of the panel; None for a job without an image."""
    use = ImageUse.objects.filter(job=job).select_related("image").first()
    if use is None:
        return None
    is_visible = use.image and Image.objects.visible_to(user).filter(pk=use.image.pk).exists()
    away = held_back.by_machine({use.node} if use.boxed and use.node and job.is_final else ()).get(use.node)
    own = Job.objects.editable_by(user).filter(pk=job.pk).exists()
    return {
        "use": use,
        "url": reverse("images:detail", args=[use.image.pk]) if is_visible and use.image else "",
        "away": wait_reasons.sentence(away.code, away.args) if away else "",  # what a restored job would wait for
        "can_save": own and user.can(Action.JOBS_SUBMIT) and not saving.why_not(job, user),
        "can_forget": own and user.can(Action.JOBS_CONTROL) and boxes.can_forget(job) and bool(use.boxed and use.node),
    }
