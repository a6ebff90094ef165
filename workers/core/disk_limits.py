"""Disk limit of a job: its own, else its cluster's default, and never more than its cluster's maximum.

All sizes are bytes. A limit holds for each node of a job: on the first one for the run directory that all nodes share
and the temporary files there, on any other for the temporary files and the records of its rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib import units
from aiplatform.lib.errors import DomainError, Invalid
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job, VirtualCluster
from workers.core.runs import RunDir
from workers.supervisor import project_quota

MIN_BYTES = 1 << 20
"""The records of a run and its folders take some of it themselves."""
MAX_BYTES = 1 << 53  # 8 PiB: every integer up to here is exact in JSON
MIB = 1 << 20
_RANKS = 128  # project numbers of one attempt


class OverDiskLimit(DomainError, code="over_limit", field="max_disk_bytes"):
    """More disk space than a job of this cluster can request."""


def limit_bytes(job: Job) -> int | None:
    """How much disk space a job may take on each of its nodes; None is no limit."""
    return _smallest(job.max_disk_bytes or job.cluster.default_disk_bytes, job.cluster.max_disk_bytes)


def check(cluster: VirtualCluster, requested: int | None) -> None:
    """Refuse a request above the maximum of the cluster.

    Raises:
        OverDiskLimit: naming both.
    """
    maximum = cluster.max_disk_bytes
    if requested is not None and maximum is not None and requested > maximum:
        raise OverDiskLimit(
            _("%(asked)s of disk space requested; a job in %(cluster)s can use at most %(most)s.")
            % {"asked": units.size(requested), "most": units.size(maximum), "cluster": cluster.name},
            asked=requested, most=maximum,
        )  # fmt: skip


def check_size(value: int | None, field: str = "max_disk_bytes") -> None:
    """Refuse what is no disk limit.

    Raises:
        Invalid: out of range.
    """
    if value is not None and not MIN_BYTES <= value <= MAX_BYTES:
        raise Invalid(
            _("A disk limit is between %(least)s and %(most)s.")
            % {"least": units.size(MIN_BYTES), "most": units.size(MAX_BYTES)},
            field=field,
        )


def check_of_cluster(default: int | None, maximum: int | None) -> None:
    """Refuse disk limits of a cluster that are out of range, or a default above the maximum.

    Raises:
        Invalid: naming the field.
    """
    check_size(maximum)
    check_size(default, "default_disk_bytes")
    if default is not None and maximum is not None and default > maximum:
        raise Invalid(_("The default disk limit is more than the maximum."), field="default_disk_bytes")


def of_ticket(attempt: Attempt, rank: int, launch: Launch, tmp: Path) -> Mapping[str, Any]:
    """Fields of the ticket of a rank: limit, counted folders and the number of its project quota.

    Args:
        tmp: folder for temporary files of the rank.
    """
    limit = limit_bytes(attempt.job)
    if limit is None:
        return {}
    own = [RunDir.for_attempt(attempt.job_id, attempt.number).of_rank(rank), tmp, *launch.own_folders, *_layers(launch)]
    number = (attempt.pk * _RANKS + rank % _RANKS) % project_quota.FIRST_PROJECT
    return {
        "disk_bytes": limit,
        "disk_folders": list(dict.fromkeys(map(str, own))),
        "disk_project": project_quota.FIRST_PROJECT + number,
    }


def from_gib(gib: float | None) -> int | None:
    """GiB as forms take them, in bytes; None and 0 are no limit of its own."""
    return round(gib * (1 << 30)) if gib else None


def to_gib(size: int | None) -> float | None:
    """Bytes in GiB, as forms show them."""
    return size / (1 << 30) if size else None


def _layers(launch: Launch) -> list[str]:
    """Writable layers over an image, which hold what is installed in the job."""
    parts = [launch.overlay, *launch.overlay.get("system", ())]
    return [str(part["upper"]) for part in parts if part.get("upper")]


def _smallest(*sizes: int | None) -> int | None:
    return min((size for size in sizes if size is not None), default=None)
