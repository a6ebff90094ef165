"""Everybody's jobs, for operators: find, stop one or many."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from workers.core import kinds
from workers.core.models import Job
from workers.jobs import job_page, stopping
from workers.jobs.forms.task_filter import TaskFilter
from workers.jobs.orders import ORDERING


@require_GET
@needs(Action.TASKS_MANAGE)
def show(request: SignedInRequest) -> HttpResponse:
    """Every job of every person; the filters of TaskFilter and `?ordering=`. htmx gets the table alone."""
    form = TaskFilter(request.GET, user=request.user)
    rows = form.apply(job_page.for_table(Job.objects.visible_to(request.user)))
    page = ORDERING.page(request, rows)
    for job in page.rows:
        job.kind_label, job.kind_icon = kinds.label_of(job.kind), kinds.icon_of(job.kind)
    template = "workers/_task_table.html" if request.htmx else "workers/tasks.html"
    return render(request, template, {"page": page, "form": form})


@require_POST
@needs(Action.TASKS_MANAGE)
def stop(request: SignedInRequest) -> HttpResponse:
    """Stop the ticked jobs. Those that ended meanwhile are passed over."""
    numbers = [int(n) for n in request.POST.getlist("job") if n.isdecimal() and len(n) < 19]
    done = stopping.stop_many(by=request.user, numbers=numbers)
    if done.requested:
        text = ngettext("Stop of %(count)s job requested.", "Stop of %(count)s jobs requested.", len(done.requested))
        messages.info(request, text % {"count": len(done.requested)})
    if done.over:
        messages.warning(request, _("%(count)s had already ended.") % {"count": done.over})
    if not numbers:
        messages.warning(request, _("Select the jobs to stop first."))
    back = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
    return redirect(back if safe else reverse("workers:tasks"))
