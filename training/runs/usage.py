"""Tell datasets which trainings still use a version."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from datasets.models import DatasetVersion
from training.runs.models import TrainingInput, TrainingJob


def trainings_on(version: DatasetVersion) -> list[str]:
    """One phrase per training that waits or runs on `version`; ended ones keep only its name."""
    rows = TrainingJob.objects.unfinished().filter(
        Q(version=version)
        | Q(eval_version=version)
        | Q(pk__in=TrainingInput.objects.filter(version=version).values("training"))
    )
    return [
        _("training job %(name)s of %(owner)s") % {"name": row.job.name, "owner": row.job.owner}
        for row in rows.select_related("job__owner").order_by("pk")[:20]
    ]
