"""Dataset versions that a job reads: what is refused, what its start checks again, how the job finds them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import DatasetVersion
from training.programs import data_checks
from training.programs.start import CannotRun
from workers.core.runs import RunDir

DATA = "data"  # the role of a version that only its name tells from others
MAX_DATASETS = 20


class InputRow(Protocol):
    """A row that names a version, even after the version is deleted."""

    name: str

    @property
    def version(self) -> DatasetVersion | None: ...


def check(user: User, datasets: Sequence[DatasetVersion]) -> None:
    """Refuse datasets that the user's job cannot read.

    Raises:
        Invalid: too many, or one twice.
        VersionNotReady: a dataset is not whole, or not for this person.
    """
    refusals = Refusals()
    with refusals:
        if len(datasets) > MAX_DATASETS:
            raise Invalid(_("At most %(most)s datasets.") % {"most": MAX_DATASETS}, field="datasets")
    with refusals:
        if len({version.pk for version in datasets}) < len(datasets):
            raise Invalid(_("Duplicate dataset."), field="datasets")
    for version in datasets[:MAX_DATASETS]:
        with refusals:
            data_checks.check_readable(user, version, field="datasets")
    refusals.end()


def spec(datasets: Iterable[DatasetVersion]) -> list[dict[str, Any]]:
    """The versions as they stand in spec.json."""
    return [
        {"id": version.pk, "name": str(version), "manifest_sha256": version.manifest_sha256} for version in datasets
    ]


def still_there(rows: Iterable[InputRow], owner: User, *, check: bool) -> list[DatasetVersion]:
    """The versions of a job's rows, whole and on the disk.

    Args:
        check: whether the owner must be allowed to read them now.

    Raises:
        CannotRun: one of them is gone.
        VersionNotReady: not for this person any longer.
    """
    versions = []
    for row in rows:
        if row.version is None or not row.version.is_ready or not row.version.path.is_dir():
            raise CannotRun(wording.message("training.version_gone", version=row.name))
        if check:
            data_checks.check_readable(owner, row.version, field="datasets")
        versions.append(row.version)
    return versions


def linked(run: RunDir, versions: Iterable[DatasetVersion]) -> dict[str, str]:
    """`linked_as` for versions that only their names tell from each other."""
    return linked_as(run, [(version, DATA) for version in versions])


def linked_as(run: RunDir, versions: Iterable[tuple[DatasetVersion, str]]) -> dict[str, str]:
    """Link the versions under inputs/ for people who look; the variables returned tell jobs the real folders.

    Args:
        versions: each with its role; one of the role "data" is linked by its name, any other by its role.
    """
    run.inputs.mkdir(parents=True, exist_ok=True)
    rows = []
    for version, role in versions:
        rows.append({"name": str(version), "role": role, "dir": str(version.path)})
        link = run.inputs / (role if role != DATA else f"{version.dataset.name}-v{version.number}")
        if not link.is_symlink():
            link.symlink_to(version.path)
    first = {"AIP_DATASET_DIR": rows[0]["dir"]} if rows else {}
    return {**first, "AIP_DATASETS": json.dumps(rows, ensure_ascii=False)}
