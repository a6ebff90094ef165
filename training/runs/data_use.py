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


class NotRestorable(DomainError):
    code = "not_restorable"
    field = "checkpoint"


def rows(training: TrainingJob) -> list[tuple[str, DatasetVersion | None, str]]:
    """(name, version, role) of everything it was submitted with; a version that was deleted since is None."""
    found: list[tuple[str, DatasetVersion | None, str]] = []
    if training.version_label:
        found.append((training.version_label, training.version, TRAIN))
    if training.eval_version is not None:
        found.append((str(training.eval_version), training.eval_version, EVAL))
    more = training.inputs.select_related("version__dataset")
    return found + [(row.name, row.version, run_inputs.DATA) for row in more]


def still_there(training: TrainingJob) -> list[tuple[DatasetVersion, str]]:
    """(version, role) of its data, whole and on the disk.

    Raises:
        CannotRun: one of them is gone.
    """
    found = []
    for name, version, role in rows(training):
        if version is None or not version.is_ready or not version.path.is_dir():
            raise CannotRun(wording.message("training.version_gone", version=name))
        found.append((version, role))
    return found


def check_readable(
    training: TrainingJob, versions: Iterable[tuple[DatasetVersion, str]], *, field: str = "version"
) -> None:
    """Refuse data that its owner may not use now; a preset's must be annotated.

    Raises:
        VersionNotReady: naming each of them.
    """
    check = data_checks.check_readable if training.is_own_code else data_checks.check_annotated
    found = Refusals()
    for version, _role in versions:
        with found:
            check(training.job.owner, version, field=field)
    found.end()


def check_restore(training: TrainingJob) -> None:
    """Refuse to let a training go on whose data are gone, or no longer its owner's to use.

    Raises:
        NotRestorable, VersionNotReady: with what is missing.
    """
    found = Refusals()
    for name, version, _role in rows(training):
        with found:
            if version is None:
                raise NotRestorable(_("%(version)s was deleted, so the training cannot go on.") % {"version": name})
            check_readable(training, [(version, _role)], field="checkpoint")
    found.end()
