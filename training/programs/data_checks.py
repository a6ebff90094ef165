"""Refuse data that a training, or any other job, cannot use; asked at submission, and again at each start."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from datasets.models import DatasetVersion


class VersionNotReady(DomainError, code="version_not_ready", field="version"): ...


class WrongTask(DomainError, code="wrong_task", field="version"): ...


def check_annotated(user: User, version: DatasetVersion, *, field: str = "version") -> None:
    """Refuse data that a preset cannot learn from.

    Raises:
        VersionNotReady: being imported, not annotated, being deleted, or no longer shown to this person.
    """
    current = check_readable(user, version, field=field)
    if not current.annotated:
        raise VersionNotReady(wording.message("training.version_not_annotated", version=current), field=field)


def check_readable(user: User, version: DatasetVersion, *, field: str = "version") -> DatasetVersion:
    """Refuse data that a job of this person cannot read; returns the row as it is now.

    Raises:
        VersionNotReady: being imported, being deleted, or no longer shown to this person.
    """
    current: DatasetVersion | None = (
        DatasetVersion.objects.usable_by(user).select_related("dataset").filter(pk=version.pk).first()
    )
    if current is None or current.dataset.deleting:
        raise VersionNotReady(wording.message("training.dataset_gone"), field=field)
    if not current.is_ready:
        raise VersionNotReady(wording.message("training.version_not_imported", version=current), field=field)
    return current


def check_alike(version: DatasetVersion, other: DatasetVersion) -> None:
    """Refuse annotated data to score on that has other classes than the annotated data to learn from.

    Raises:
        WrongTask: naming both.
    """

    def names(row: DatasetVersion) -> list[str]:
        return sorted(str(entry.get("name")) for entry in row.classes)

    if not (version.annotated and other.annotated):
        return  # what raw data mean only the code knows
    if version.task != other.task or names(version) != names(other):
        raise WrongTask(
            _("%(other)s has different classes than %(version)s and cannot be used to evaluate this training job.")
            % {"other": other, "version": version},
            field="eval_version",
        )
