"""Tell datasets which environments still read a version."""

from __future__ import annotations

from django.utils.translation import gettext as _

from datasets.models import DatasetVersion
from training.environments.models import Environment


def environments_on(version: DatasetVersion) -> list[str]:
    """One phrase per environment that waits or runs and reads `version`; ended ones keep only its name."""
    rows = Environment.objects.unfinished().filter(inputs__version=version)
    return [
        _("workspace %(name)s of %(owner)s") % {"name": row.job.name, "owner": row.job.owner}
        for row in rows.select_related("job__owner").order_by("pk")[:20]
    ]
