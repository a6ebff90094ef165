"""Hide datasets that are removed: their names are free at once, their files and rows go soon after."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import User
from aiplatform.lib.enqueue import enqueue
from datasets.models import Dataset, DatasetVersion, Import


@transaction.atomic
def hide(dataset: Dataset) -> None:
    """Remove a dataset from every list and free its name; a task removes the rest."""
    Dataset.objects.filter(pk=dataset.pk).update(deleting=True, name=f"~{dataset.pk}")
    enqueue("datasets.purge", dataset_id=dataset.pk)


def discarded(owner: User) -> QuerySet[Dataset]:
    """Datasets of `owner` that were made for an import and never got data: all imports failed or were cancelled.

    One that was made empty on purpose is not among them.
    """
    tried = Import.objects.filter(dataset=OuterRef("pk"))
    versions = DatasetVersion.objects.filter(dataset=OuterRef("pk"))
    return Dataset.objects.filter(
        Exists(tried.filter(creates_dataset=True)),
        ~Exists(tried.filter(state__in=Import.OPEN)),
        ~Exists(versions),
        owner=owner,
        deleting=False,
    )


def hide_with(row: Import) -> None:
    """Remove the dataset that a discarded import was to fill first, unless it got other data."""
    if row.creates_dataset and discarded(row.dataset.owner).filter(pk=row.dataset_id).exists():
        hide(row.dataset)
