"""Data of a training that was submitted: which versions it reads, and whether it still may."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Refusals
from datasets.models import DatasetVersion
from training.programs import data_checks, run_inputs
from training.programs.start import CannotRun
from training.runs.models import TrainingJob

TRAIN, EVAL = "train", "eval"


class NotRestorable(DomainError, code="not_restorable", field="checkpoint"): ...


def rows(training: TrainingJob) -> list[tuple[str, DatasetVersion | None, str]]:
    """Return (name, version, role) of all submitted datasets; a version deleted since is None."""
    uses: list[tuple[str, DatasetVersion | None, str]] = []
    if training.version_label:
        uses.append((training.version_label, training.version, TRAIN))
    if training.eval_version is not None:
        uses.append((str(training.eval_version), training.eval_version, EVAL))
    more = training.inputs.select_related("version__dataset")
    return uses + [(row.name, row.version, run_inputs.DATA) for row in more]


def still_there(training: TrainingJob) -> list[tuple[DatasetVersion, str]]:
    """Return (version, role) of its datasets, which are complete and on disk.

    Raises:
        CannotRun: one of them is gone.
    """
    versions = []
    for name, version, role in rows(training):
        if version is None or not version.is_ready or not version.path.is_dir():
            raise CannotRun(wording.message("training.version_gone", version=name))
        versions.append((version, role))
    return versions


def check_readable(
    training: TrainingJob, versions: Iterable[tuple[DatasetVersion, str]], *, field: str = "version"
) -> None:
    """Refuse datasets that the owner may no longer use; those of a preset must be annotated.

    Raises:
        VersionNotReady: naming each of them.
    """
    check = data_checks.check_readable if training.is_own_code else data_checks.check_annotated
    refusals = Refusals()
    for version, _role in versions:
        with refusals:
            check(training.job.owner, version, field=field)
    refusals.end()


def check_restore(training: TrainingJob) -> None:
    """Refuse to resume a training whose datasets are deleted or no longer usable by its owner.

    Raises:
        NotRestorable, VersionNotReady: with what is missing.
    """
    refusals = Refusals()
    for name, version, _role in rows(training):
        with refusals:
            if version is None:
                raise NotRestorable(
                    _("%(version)s was deleted, so the training job cannot continue.") % {"version": name}
                )
            check_readable(training, [(version, _role)], field="checkpoint")
    refusals.end()
