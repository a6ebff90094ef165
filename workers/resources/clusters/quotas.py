"""Quotas by kind of device: what the machines have, what clusters were guaranteed, what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Sum
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers.core.device_kinds import CPU, KINDS, rules
from workers.core.models import ClusterDevice, Device, Node, VirtualCluster
from workers.planning import planner_input
from workers.planning.planner.snapshot import FULL_CARD, NO_QUOTA, Quota

MAX_GPUS = 100_000

gettext_noop("Simulated GPU")  # what the fake body calls its cards; drivers name theirs themselves


class QuotaTooLarge(DomainError, code="quota_too_large"):
    """More cards guaranteed than the machines have; the figures are in `facts`."""


@dataclass(frozen=True)
class KindPresent:
    """Devices of one kind, or CPU slots, on all nodes. `free` is the number without a guarantee."""

    kind: str
    label: str
    models: tuple[str, ...]
    present: int
    guaranteed: int

    @property
    def free(self) -> int:
        return max(0, self.present - self.guaranteed)


def detect(*, besides: VirtualCluster | None = None) -> list[KindPresent]:
    """The kinds of cards that the machines have, by name, and last their CPU slots.

    Args:
        besides: leave this cluster's own guarantees out of `guaranteed`; its form asks what it could have.
    """
    rows = Device.objects.exclude(node__state=Node.State.REMOVED).values_list("kind", "model")
    counted: dict[str, int] = {}
    models: dict[str, list[str]] = {}
    by_model = rows.annotate(n=Count("pk"), shares=Sum("capacity")).order_by("kind", "model")
    for kind, model, count, shares in sorted(by_model, key=lambda row: row[0] == CPU.name):
        counted[kind] = counted.get(kind, 0) + (shares // FULL_CARD if kind == CPU.name else count)
        if model and kind != CPU.name:
            models.setdefault(kind, []).append(_(model))
    promised = _guaranteed(besides)
    return [
        KindPresent(kind, label_of(kind), tuple(models.get(kind, ())), count, promised.get(kind, 0))
        for kind, count in counted.items()
    ]


def label_of(kind: str) -> str:
    """What people read for a kind of device in quotas."""
    return gettext("CPU slots") if kind == CPU.name else rules(kind).label


def kinds_for(cluster: VirtualCluster | None) -> list[KindPresent]:
    """The kinds of a cluster's form: those present, and missing ones that it has a quota of."""
    present = detect(besides=cluster)
    names = {item.kind for item in present}
    promised = _guaranteed(cluster)
    missing = [] if cluster is None else cluster.quotas.exclude(kind__in=names).values_list("kind", flat=True)
    return [*present, *(KindPresent(kind, label_of(kind), (), 0, promised.get(kind, 0)) for kind in missing)]


@transaction.atomic
def set_quotas(cluster: VirtualCluster, wanted: Mapping[str, Quota]) -> None:
    """Set quotas of some kinds; the others stay. A quota without any number removes its row.

    Raises:
        Invalid: a kind that nobody knows, or a number out of range.
        QuotaTooLarge: a guarantee was raised beyond what the machines have and others were not promised.
    """
    list(VirtualCluster.objects.select_for_update().order_by("pk").values_list("pk"))  # one promise at a time
    check(cluster, wanted)
    for kind, quota in wanted.items():
        if quota == NO_QUOTA:
            ClusterDevice.objects.filter(cluster=cluster, kind=kind).delete()
        else:
            values = {"guaranteed": quota.guaranteed, "borrows": quota.borrows, "per_user": quota.per_user}
            ClusterDevice.objects.update_or_create(cluster=cluster, kind=kind, defaults=values)


def check(cluster: VirtualCluster, wanted: Mapping[str, Quota]) -> None:
    """Refuse at once what `set_quotas` refuses, and write nothing; an unsaved cluster has no quotas."""
    had = planner_input.quotas_of(cluster) if cluster.pk else {}
    kinds = {present_kind.kind: present_kind for present_kind in kinds_for(cluster if cluster.pk else None)}
    refusals = Refusals()
    for kind, quota in wanted.items():
        with refusals:
            present = kinds.get(kind) or KindPresent(kind, label_of(kind) if kind in KINDS else kind, (), 0, 0)
            _check_kind(cluster, present, quota, had.get(kind, NO_QUOTA).guaranteed)
    refusals.end()


def _check_kind(cluster: VirtualCluster, present: KindPresent, quota: Quota, before: int | None) -> None:
    kind = present.kind
    if kind not in KINDS:
        raise Invalid(_("Unknown device kind %(kind)s.") % {"kind": kind[:20]}, field="devices")
    if not all(0 <= (n or 0) <= MAX_GPUS for n in (quota.guaranteed, quota.per_user)):
        raise Invalid(_("Request 0 to %(most)s GPUs.") % {"most": MAX_GPUS}, field=f"guaranteed_{kind}")
    raised = quota.guaranteed is not None and (before is None or quota.guaranteed > before)
    if raised and (quota.guaranteed or 0) > present.free:
        raise _too_large(cluster, present, quota.guaranteed or 0)


def _guaranteed(besides: VirtualCluster | None) -> dict[str, int]:
    rows = ClusterDevice.objects.exclude(guaranteed=None)
    if besides is not None and besides.pk:
        rows = rows.exclude(cluster=besides)
    return {row["kind"]: row["sum"] for row in rows.values("kind").annotate(sum=Sum("guaranteed"))}


def _too_large(cluster: VirtualCluster, kind: KindPresent, requested: int) -> QuotaTooLarge:
    facts = {"kind": kind.label, "asked": requested, "present": kind.present, "free": kind.free}
    others = ClusterDevice.objects.filter(kind=kind.kind, guaranteed__gt=0).exclude(cluster_id=cluster.pk)
    named = ", ".join(f"{row.cluster.name} {row.guaranteed}" for row in others.select_related("cluster")[:5])
    if not kind.present:
        text = _("%(asked)s × %(kind)s requested, but no node has any.")
    elif named:
        text = _(
            "%(asked)s × %(kind)s requested; %(free)s of %(present)s are unallocated. Guaranteed so far: %(named)s."
        )
    else:
        text = _("%(asked)s × %(kind)s requested; the nodes have %(present)s.")
    return QuotaTooLarge(text % (facts | {"named": named}), field=f"guaranteed_{kind.kind}", **facts)
