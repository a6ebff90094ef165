"""What a job's page says of templates: which one the job was made of, and that it can become one."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from accounts.permissions import Action
from training import request_schemas
from training.job_templates.models import JobTemplate, TemplateUse
from workers.jobs.job_page import Panel
from workers.models import Job


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None for jobs of kinds that are not requested by templates, and of the platform's own."""
    schema = request_schemas.SCHEMAS.find(job.kind)
    if schema is None or not user.can(Action.JOBS_SUBMIT) or not schema.has(job):
        return None
    use = TemplateUse.objects.filter(job=job).select_related("version").first()
    seen = use and use.version and JobTemplate.objects.visible_to(user).filter(pk=use.version.template_id).exists()
    return {"use": use, "seen": seen}


PANEL = Panel("template", "job_templates/_panel.html", context, 90)
