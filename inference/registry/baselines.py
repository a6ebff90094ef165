"""What a version learned from, as a baseline of what services are shown: a job counts it once."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import DomainError
from datasets.models import DatasetVersion
from inference.registry import drift, model_jobs
from inference.registry.baseline_models import ModelBaseline
from inference.registry.models import ModelTask, ModelVersion
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

FILE = "baseline.json"  # in the outputs


class NoBaseline(DomainError, code="no_baseline"):
    """There is nothing that a baseline could be made of."""


def data_of(version: ModelVersion, user: User) -> DatasetVersion | None:
    """Return the dataset version that a version was trained on, if this user may use it."""
    rows = DatasetVersion.objects.usable_by(user).select_related("dataset")
    version_row: DatasetVersion | None = rows.filter(pk=version.dataset_version_id or 0).first()
    return version_row


def learn(*, user: User, version: ModelVersion, cpus: float = model_jobs.CPUS) -> ModelTask:
    """Queue a job that shows the training images to the model and counts what they and its answers are like.

    Raises:
        NoBaseline: the model has no description, or the user may not use its training data.
        DomainError: the queue refuses.
    """
    if not version.can_be_evaluated or not version.can_serve:
        raise NoBaseline(_("%(model)s has no description, so it gets no images.") % {"model": version})
    if data_of(version, user) is None:
        raise NoBaseline(
            _("The training images of %(model)s are not available, or not shared with you.") % {"model": version}
        )
    resources: Resources = {"cluster": cluster_for(user, None), "cpus": cpus, "gpus_per_node": 0}
    name = titles.derive_name(f"{version} baseline", room=100)
    with transaction.atomic():
        job = submission.submit(owner=user, kind=model_jobs.KIND, name=name, spec={"version": version.pk}, **resources)
        return ModelTask.objects.create(job=job, act=ModelTask.Act.BASELINE, version=version)


def store(task: ModelTask, reported: Any) -> None:
    """Store the tally that the job counted if it is valid; idempotent."""
    tally, version = drift.validate(reported), task.version
    if tally is None or version is None or not tally["images"]:
        return
    defaults = {"tally": tally, "images": tally["images"], "data_name": version.dataset_label, "made_at": now()}
    ModelBaseline.objects.update_or_create(version=version, defaults=defaults)
    ModelTask.objects.filter(pk=task.pk).update(figures={"images": tally["images"]})


def on_its_way(version: ModelVersion) -> ModelTask | None:
    """The job that makes the baseline of a version now."""
    task = version.measurements.filter(act=ModelTask.Act.BASELINE).select_related("job").order_by("-pk").first()
    return None if task is None or task.job.published else task
