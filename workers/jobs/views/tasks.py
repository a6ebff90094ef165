"""Jobs of all users, for operators: find, and stop the selected ones."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from aiplatform.objects import bulk
from workers.core import kinds
from workers.core.models import Job
from workers.core.states import COMPLETED
from workers.jobs import job_page, summaries
from workers.jobs.forms.task_filter import TaskFilter
from workers.jobs.orders import ORDERING

BULK = (
    bulk.stop(
        "/api/v1/jobs/0/stop/",
        _("Their processes are stopped and their devices are released. Logs, checkpoints and files are kept."),
    ),
)


@require_GET
@needs(Action.TASKS_MANAGE)
def show(request: SignedInRequest) -> HttpResponse:
    """Every job of every person; the filters of TaskFilter and `?ordering=`. htmx gets the table alone."""
    form = TaskFilter(request.GET, user=request.user)
    rows = form.apply(job_page.for_table(Job.objects.visible_to(request.user)))
    page = ORDERING.page(request, rows)
    metrics = summaries.key_metrics(job for job in page.rows if job.state in COMPLETED)
    for job in page.rows:
        job.key_metric = metrics.get(job.pk, "")
        job.kind_label, job.kind_icon = kinds.label_of(job.kind), kinds.icon_of(job.kind)
    template = "workers/_task_table.html" if request.htmx else "workers/tasks.html"
    return render(request, template, {"page": page, "form": form, "bulk": BULK})
