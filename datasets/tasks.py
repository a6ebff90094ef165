"""Celery tasks of datasets. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from aiplatform.lib.enqueue import enqueue
from datasets.models import DatasetVersion
from datasets.services import datasets, figures, imports, thumbnails, uploads


@shared_task(name="datasets.run_import", ignore_result=True)
def run_import(import_id: int) -> None:
    """Check or commit one import."""
    imports.run(import_id)


@shared_task(name="datasets.thumbnails", ignore_result=True)
def make_thumbnails(version_id: int, after: int = 0) -> None:
    """Make a thousand thumbnails, then queue the next thousand, so that other work gets its turn."""
    version = DatasetVersion.objects.filter(pk=version_id, state=DatasetVersion.State.READY).first()
    if version is None:
        return
    last = thumbnails.make_all(version, after=after)
    if last is not None:
        enqueue("datasets.thumbnails", version_id=version_id, after=last)


@shared_task(name="datasets.figures", ignore_result=True)
def count_figures(version_id: int) -> None:
    """Count what a version of an older platform holds; safe to send twice."""
    for version in DatasetVersion.objects.filter(pk=version_id, state=DatasetVersion.State.READY, figures=None):
        figures.count(version)


@shared_task(name="datasets.purge", ignore_result=True)
def purge(dataset_id: int) -> None:
    """Remove a deleted dataset's files and rows."""
    datasets.purge(dataset_id)


@shared_task(name="datasets.sweep", ignore_result=True)
def sweep() -> None:
    """Continue what a lost message or a dead worker left: imports, expired uploads, half-deleted datasets."""
    imports.sweep()
    uploads.sweep_expired()
    datasets.sweep_deleted()
