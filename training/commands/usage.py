"""Tell datasets which commands still read a version."""

from __future__ import annotations

from django.utils.translation import gettext as _

from datasets.models import DatasetVersion
from training.commands.models import Command


def commands_on(version: DatasetVersion) -> list[str]:
    """One phrase per command that waits or runs and reads `version`; ended ones keep only its name."""
    rows = Command.objects.unfinished().filter(inputs__version=version)
    return [
        _("custom job %(name)s of %(owner)s") % {"name": row.job.name, "owner": row.job.owner}
        for row in rows.select_related("job__owner").order_by("pk")[:20]
    ]
