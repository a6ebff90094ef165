"""Statistics of versions: counted when one is made, for those of older platforms on first use."""

from __future__ import annotations

import logging
from typing import Any

from aiplatform.lib.enqueue import enqueue
from datasets.formats import figures
from datasets.models import DatasetVersion

log = logging.getLogger(__name__)

AT_ONCE = 5_000  # images that are counted within a request; more are counted by the CPU worker


def for_version(version: DatasetVersion) -> dict[str, Any] | None:
    """Return the statistics of a ready version; None while a worker counts, and if its files cannot be read."""
    if version.figures is None:
        if version.image_count > AT_ONCE:
            enqueue("datasets.figures", version_id=version.pk)
        else:
            try:
                count(version)
            except OSError as exc:
                log.warning("version=%s its files cannot be read: %s", version.pk, exc)
    return version.figures


def count(version: DatasetVersion) -> None:
    """Count a version that has no figures yet, from its files."""
    version.figures = figures.read(version.path)
    DatasetVersion.objects.filter(pk=version.pk).update(figures=version.figures)
