"""The job kind `notebook`: a program that somebody works in by day."""

from __future__ import annotations

from django.urls import reverse

from accounts.access.permissions import Action
from workers.core.count_classes import ENVIRONMENT
from workers.core.kinds import JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir


class NotebookKind(JobKind):
    """`spec` is empty: there is one notebook for everybody."""

    name = "notebook"
    label = "Notebook"
    plural = "Notebooks"
    hint = "Try things out"
    icon = "keyboard"
    order = 10
    list_page = "notebooks:list"
    view_action = Action.JOBS_VIEW
    counts_as = ENVIRONMENT
    idle_guard = False
    preemptible = True

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        return Launch(argv=["notebook"], ports=1)

    def url(self, job: Job) -> str:
        return reverse("notebooks:detail", args=[job.pk])
