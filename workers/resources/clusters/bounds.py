"""Bounds of one job: least and most cores and memory per node."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import read_once, units
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers.core.device_kinds import CPU, rules
from workers.core.models import JobLimit, Node, VirtualCluster
from workers.resources.clusters import quotas

FLOOR_PART = 8
"""The floor takes at most this part of the largest machine, so that a laptop still runs several jobs."""
MAX_CPUS = 4096.0
MAX_MEMORY_MIB = 64 * units.MIB_PER_GIB * 1024


class OverLimit(DomainError, code="over_limit"):
    """More cores or memory than a job of this cluster may use; the figures are in `facts`."""


@dataclass(frozen=True)
class Bounds:
    """Least and most cores and memory (MiB) of one job on each of its nodes."""

    cpus_min: float = JobLimit.CPUS[0]
    cpus_max: float = JobLimit.CPUS[1]
    memory_min_mib: int = JobLimit.MEMORY_MIB[0]
    memory_max_mib: int = JobLimit.MEMORY_MIB[1]

    @property
    def cores_words(self) -> str:
        """ "0.25 to 2 CPU cores"."""
        return _("%(least)s to %(most)s CPU cores") % {
            "least": units.number(self.cpus_min),
            "most": units.number(self.cpus_max),
        }

    @property
    def memory_words(self) -> str:
        """ "400 MiB to 80 GiB"."""
        return _("%(least)s to %(most)s") % {
            "least": units.memory(self.memory_min_mib),
            "most": units.memory(self.memory_max_mib),
        }


def bounds(cluster: VirtualCluster, kind: str) -> Bounds:
    """What the operator set for jobs on devices of `kind` ("gpu", "npu", "cpu"), else the defaults."""
    limits = JobLimit.objects.filter(cluster=cluster, kind=kind)
    row = read_once.get_or_read(("bounds", cluster.pk, kind), limits.first)
    return bounds_of(row) if row else Bounds()


def bounds_of_kinds(cluster: VirtualCluster) -> list[tuple[str, str, Bounds]]:
    """(kind, label, bounds) for every kind of device that exists, CPU last."""
    kinds = list(dict.fromkeys([*(present.kind for present in quotas.kinds_for(cluster)), CPU.name]))
    return [(kind, rules(kind).label, bounds(cluster, kind)) for kind in kinds]


def bounds_of(row: JobLimit) -> Bounds:
    return Bounds(row.cpus_min, row.cpus_max, row.memory_min_mib, row.memory_max_mib)


def check(cluster: VirtualCluster, device_kind: str, cpus: float, memory_mib: int) -> tuple[float, int]:
    """Return what a job gets for its request, per node.

    The floor is what a job gets at least, as far as the machines have it: on a machine with fewer than eight
    times the floor it is an eighth of that machine. The ceiling is never exceeded.

    Args:
        device_kind: "gpu", "npu", or "cpu" for a job without cards.
        cpus: cores asked for.
        memory_mib: host memory asked for; 0 asks for as much as is allowed and there is.

    Returns:
        Cores, and the most memory in MiB that the job may hold before it is ended.

    Raises:
        OverLimit: more than the ceiling was asked for; the sentence names it.
    """
    limit = bounds(cluster, device_kind)
    where = {"kind": rules(device_kind).label, "cluster": cluster.name}
    refusals = Refusals()
    with refusals:
        if cpus > limit.cpus_max:
            raise OverLimit(
                _("%(asked)s cores requested; a job on %(kind)s in %(cluster)s can use at most %(most)s.")
                % (where | {"asked": units.number(cpus), "most": units.number(limit.cpus_max)}),
                field="cpus", asked=cpus, most=limit.cpus_max,
            )  # fmt: skip
    with refusals:
        if memory_mib > limit.memory_max_mib:
            raise OverLimit(
                _("%(asked)s of memory requested; a job on %(kind)s in %(cluster)s can use at most %(most)s.")
                % (where | {"asked": units.memory(memory_mib), "most": units.memory(limit.memory_max_mib)}),
                field="memory_mib", asked=memory_mib, most=limit.memory_max_mib,
            )  # fmt: skip
    refusals.end()
    possible = as_there_is(limit, read_once.get_or_read("largest", largest))
    return max(cpus, possible.cpus_min), max(memory_mib or possible.memory_max_mib, possible.memory_min_mib)


def as_there_is(limit: Bounds, largest: tuple[float, int]) -> Bounds:
    """The bounds as the machines have it: what a job can get today.

    Args:
        largest: see `largest`.
    """
    cores, held = largest
    return Bounds(
        cpus_min=min(limit.cpus_min, cores / FLOOR_PART) if cores else limit.cpus_min,
        cpus_max=min(limit.cpus_max, cores) if cores else limit.cpus_max,
        memory_min_mib=min(limit.memory_min_mib, held // FLOOR_PART) if held else limit.memory_min_mib,
        memory_max_mib=min(limit.memory_max_mib, held) if held else limit.memory_max_mib,
    )


def effective_bounds(cluster: VirtualCluster) -> list[tuple[str, str, Bounds]]:
    """(kind, label, bounds) like `bounds_of_kinds`, as far as the nodes have it; what the pages show as in effect."""
    maxima = largest()
    return [(kind, label, as_there_is(limit, maxima)) for kind, label, limit in bounds_of_kinds(cluster)]


def largest() -> tuple[float, int]:
    """(cores, MiB) of the largest machines, 0 before any has joined."""
    maxima = Node.objects.aggregate(cores=Max("cpu_cores"), memory=Max("memory_mib"))
    return maxima["cores"] or 0, maxima["memory"] or 0


@transaction.atomic
def set_bounds(cluster: VirtualCluster, kind: str, new: Bounds, *, by: User | None = None) -> JobLimit:
    """Change the bounds for jobs on devices of `kind`; counts from the next job that is submitted.

    Raises:
        Invalid: a floor above its ceiling, or a value out of range; names the field.
    """
    refusals = Refusals()
    with refusals:
        if not 0 < new.cpus_max <= MAX_CPUS or not new.cpus_min >= 0:
            raise Invalid(_("A job must use more than 0 and at most %(most)s cores.") % {"most": int(MAX_CPUS)},
                          field="cpus_max")  # fmt: skip
        if new.cpus_min > new.cpus_max:
            raise Invalid(_("The minimum number of cores exceeds the maximum."), field="cpus_min")
    with refusals:
        if not 0 < new.memory_max_mib <= MAX_MEMORY_MIB or new.memory_min_mib < 0:
            raise Invalid(_("Memory must be between 1 MiB and %(most)s.") % {"most": units.memory(MAX_MEMORY_MIB)},
                          field="memory_max_mib")  # fmt: skip
        if new.memory_min_mib > new.memory_max_mib:
            raise Invalid(_("The minimum memory exceeds the maximum."), field="memory_min_mib")
    refusals.end()
    row, _made = JobLimit.objects.update_or_create(cluster=cluster, kind=kind, defaults=vars(new))
    audit.record(by, "cluster_bounds_changed", cluster, kind=kind, **vars(new))
    return row
