"""What a job's page says of templates: which one the job was made of."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training.job_templates.models import JobTemplate, TemplateUse
from workers.jobs.job_page import Panel
from workers.models import Job


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None for jobs that were made of no template."""
    use = TemplateUse.objects.filter(job=job).select_related("version").first()
    if use is None:
        return None
    seen = use.version and JobTemplate.objects.visible_to(user).filter(pk=use.version.template_id).exists()
    return {"use": use, "seen": seen}


PANEL = Panel("template", "job_templates/_panel.html", context, 90)
