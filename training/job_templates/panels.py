"""What a job's page says of requests: the text that makes the same job again, and the template it was made of."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from accounts.access.permissions import Action
from accounts.models import User
from training.job_templates.models import JobTemplate, TemplateUse
from training.programs import request_schemas, request_secrets, request_text
from workers.core.models import Job
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel


def context(job: Job, user: User) -> dict[str, Any] | None:
    """Return None for jobs that were not created from a template."""
    use = TemplateUse.objects.filter(job=job).select_related("version").first()
    if use is None:
        return None
    is_visible = use.version and JobTemplate.objects.visible_to(user).filter(pk=use.version.template_id).exists()
    return {"use": use, "seen": is_visible}


def request_context(job: Job, user: User) -> dict[str, Any] | None:
    """Return the request of a job as text without secrets; None for jobs that no form or text requested."""
    schema = request_schemas.SCHEMAS.find(job.kind)
    if schema is None or not schema.has(job):
        return None
    url = f"{reverse('templates:expert')}?kind={schema.kind}&job={job.pk}" if user.can(Action.JOBS_SUBMIT) else ""
    shown = request_secrets.hidden(schema.of_job(job), lines=schema.command_lines)
    return {"text": request_text.written(shown), "url": url}


REQUEST_PANEL = Panel("request", "job_templates/_request_panel.html", request_context, 10, job_tabs.SPEC)
PANEL = Panel("template", "job_templates/_panel.html", context, 90, job_tabs.SPEC)
