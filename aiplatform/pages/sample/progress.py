"""How far the sample project is: its steps with their states, for the page, the home page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.pages.sample import creation
from aiplatform.pages.sample.models import SampleProject
from datasets.models import Import
from workers.core import kinds
from workers.core.models import Job
from workers.core.states import COMPLETED

LABELS = {
    "dataset": gettext_lazy("Dataset"),
    "training": gettext_lazy("Trained model"),
    "endpoint": gettext_lazy("Endpoint"),
}
StepState = Literal["done", "current", "waiting"]


@dataclass(frozen=True)
class StepProgress:
    """A step of the creation; `detail` says what it does or waits for."""

    key: str
    label: Any
    state: StepState
    name: str
    url: str
    detail: str = ""


def load(user: Any) -> SampleProject | None:
    """Return the sample project of a user with its objects, and have it continued where it is due."""
    project = find(user)
    if project is not None:
        creation.nudge_if_due(project)
    return project


def find(user: Any) -> SampleProject | None:
    """Return the sample project of a user with its objects; read once per instance of the user, thus per request."""
    if "_sample_project" not in user.__dict__:
        user.__dict__["_sample_project"] = _read(user)
    project: SampleProject | None = user.__dict__["_sample_project"]
    return project


def _read(user: Any) -> SampleProject | None:
    rows = SampleProject.objects.visible_to(user).select_related("user", "dataset", "version", "job", "model",
                                                                 "service__job")  # fmt: skip
    return rows.first()


def steps(project: SampleProject) -> list[StepProgress]:
    """Return the steps that the user of the project may do, in their order."""
    rows: list[StepProgress] = []
    for key in creation.allowed_steps(project.user):
        is_done, name, url, detail = _READERS[key](project)
        is_next = all(row.state == "done" for row in rows)
        state: StepState = "done" if is_done else "current" if is_next else "waiting"
        rows.append(StepProgress(key, LABELS[key], state, name, url, detail if state == "current" else ""))
    return rows


Reading = tuple[bool, str, str, str]


def _dataset(project: SampleProject) -> Reading:
    if project.dataset is None:
        return False, "", "", _("Generating images")
    url = reverse("datasets:detail", args=[project.dataset.pk])
    if project.version_id:
        return True, project.dataset.name, url, ""
    row = Import.objects.filter(dataset=project.dataset).order_by("pk").first()
    count = f" {row.done} / {row.total}" if row and row.total else ""
    return False, project.dataset.name, url, _("Importing images") + count


def _training(project: SampleProject) -> Reading:
    if project.model is not None:
        return True, project.model.name, reverse("inference:model-detail", args=[project.model.pk]), ""
    if project.job is None:
        return False, "", "", _("Submitting the training")
    detail = _("Registering the model") if project.job.state in COMPLETED else _job_detail(project.job)
    return False, project.job.name, kinds.url_of(project.job), detail


def _endpoint(project: SampleProject) -> Reading:
    if project.service is None:
        return False, "", "", _("Starting the endpoint")
    url = reverse("inference:service-detail", args=[project.service.pk])
    is_done = project.state == SampleProject.State.READY
    job = project.service.job
    detail = "" if job is None else _("Waiting for its first response") if job.state == "running" else _job_detail(job)
    return is_done, project.service.name, url, detail


def _job_detail(job: Job) -> str:
    """Return why a job waits, or its phase with its counter, or its state."""
    if job.state == "queued":
        return str(job.wait_sentence or job.get_state_display())
    if job.phase and job.phase_total:
        return f"{job.get_phase_display()} {job.phase_done} / {job.phase_total}"
    return str(job.get_phase_display() if job.phase else job.get_state_display())


_READERS = {"dataset": _dataset, "training": _training, "endpoint": _endpoint}
