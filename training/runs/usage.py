"""Tell datasets which trainings still use a version."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from datasets.models import DatasetVersion
from training.runs.models import TrainingInput, TrainingJob
from workers.core.models import Job


def trainings_on(version: DatasetVersion) -> list[str]:
    """One phrase per training that waits or runs on `version`; ended ones keep only its name."""
    rows = TrainingJob.objects.unfinished().filter(
        Q(version=version)
        | Q(eval_version=version)
        | Q(pk__in=TrainingInput.objects.filter(version=version).values("training"))
    )
    return [describe_training(row.job) for row in rows.select_related("job__owner").order_by("pk")[:20]]


def describe_training(job: Job) -> str:
    """Return the phrase that names the training of a job as a user of a version."""
    return _("training job %(name)s of %(owner)s") % {"name": job.name, "owner": job.owner}
