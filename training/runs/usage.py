"""Tell datasets which trainings still use a version."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from datasets.models import Dataset, DatasetVersion
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


def list_trainings(user: User, dataset: Dataset) -> list[tuple[str, str]]:
    """Return a link to the trainings that a user may see on a dataset; none without any."""
    count = TrainingJob.objects.visible_to(user).filter(version__dataset=dataset).count()
    text = ngettext("%(count)s training", "%(count)s trainings", count) % {"count": count}
    return [(text, f"{reverse('training:job-list')}?{urlencode({'q': dataset.name})}")] if count else []


def describe_training(job: Job) -> str:
    """Return the phrase that names the training of a job as a user of a version."""
    return _("training job %(name)s of %(owner)s") % {"name": job.name, "owner": job.owner}
