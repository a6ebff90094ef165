"""Rows that steps name by text or by reference, as far as their owner may work with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import Invalid
from datasets.models import Dataset, DatasetVersion
from inference.pipelines.kinds import StepFailed
from inference.pipelines.steps import references
from inference.registry.models import ModelVersion


def dataset_named(name: str, user: User) -> Dataset:
    """A dataset by name or number; one's own comes first where several people have the name.

    Raises:
        Invalid: there is none that this person may work with.
    """
    usable = Dataset.objects.usable_by(user)
    row: Dataset | None = references.find(usable, name, user)
    if row is None and (number := ids.number(name)):
        row = usable.filter(pk=number).first()
    if row is None:
        other = usable.filter(name=name).select_related("owner").order_by("pk").first()
        if other is not None:
            message = _("You have no dataset “%(name)s”. For a dataset of another user write %(owner)s/%(name)s.")
            facts = {"name": name[:80], "owner": other.owner.username}
            raise Invalid(message % facts, field="dataset")
        raise Invalid(_("You have no dataset “%(name)s”.") % {"name": name[:80]}, field="dataset")
    return row


def version_of(dataset: Dataset, word: str) -> DatasetVersion:
    """A version by number, "v3", or "latest": the newest that is ready.

    Raises:
        Invalid: there is none.
    """
    ready = dataset.versions.filter(state=DatasetVersion.State.READY).select_related("dataset").order_by("-number")
    if word != "latest":
        ready = ready.filter(number=ids.number(word.removeprefix("v")) or 0)
    row = ready.first()
    if row is None:
        message = _("%(dataset)s has no imported version %(word)s.")
        raise Invalid(message % {"dataset": dataset, "word": word[:20]}, field="version")
    version: DatasetVersion = row
    return version


def dataset_version(reference: Mapping[str, Any] | None, user: User) -> DatasetVersion:
    """The dataset version behind a reference.

    Raises:
        StepFailed: it was deleted, or its owner may not use it any more.
    """
    rows = DatasetVersion.objects.usable_by(user).select_related("dataset")
    row = rows.filter(pk=(reference or {}).get("id") or 0).first()
    if row is None:
        raise StepFailed(
            _("%(label)s was deleted or is not accessible to you any more.") % {"label": (reference or {}).get("label")}
        )
    version: DatasetVersion = row
    return version


def model_version(reference: Mapping[str, Any] | None, user: User) -> ModelVersion:
    """The model version behind a reference; raises as `dataset_version` does."""
    rows = ModelVersion.objects.usable_by(user).select_related("model")
    row = rows.filter(pk=(reference or {}).get("id") or 0).first()
    if row is None:
        raise StepFailed(
            _("%(label)s was deleted or is not accessible to you any more.") % {"label": (reference or {}).get("label")}
        )
    version: ModelVersion = row
    return version


def dataset_by_number(number: int, user: User) -> Dataset:
    """Return a dataset that this user may change.

    Raises:
        StepFailed: it was deleted, or the user may not change it any more.
    """
    dataset: Dataset | None = Dataset.objects.editable_by(user).filter(pk=number).first()
    if dataset is None:
        raise StepFailed(_("The dataset was deleted or you can no longer edit it."))
    return dataset
