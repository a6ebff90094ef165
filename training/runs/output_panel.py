"""What a job's page offers to do with its outputs: a dataset of them, or a next job that reads them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from datasets.services.datasets import NAME_MAX
from workers.core.models import Job
from workers.execution import earlier_outputs
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel


class OutputDatasetForm(forms.Form):
    """A new dataset of a job's outputs."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_MAX,
        required=False,
        help_text=gettext_lazy("Leave empty to use the name of the job."),
    )
    folder = forms.CharField(
        label=gettext_lazy("Folder"),
        max_length=500,
        required=False,
        help_text=gettext_lazy("A folder of the outputs, for example augmented. Leave empty to use all files."),
    )


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None while the job is at work, where it left nothing, and for people who may do neither."""
    may_import = user.can(Action.DATASETS_CREATE) and user.can(Action.JOBS_VIEW)
    is_own = job.owner_id == user.pk
    if not job.is_final or earlier_outputs.folder_of(job) is None or not (may_import or is_own):
        return None
    return {
        "form": OutputDatasetForm(auto_id="output-%s") if may_import else None,
        "may_command": is_own and user.can(Action.JOBS_SUBMIT),
        "may_train": is_own and user.can(Action.TRAINING_SUBMIT),
    }


PANEL = Panel("next", "training/_output_panel.html", context, 60, job_tabs.FILES)
