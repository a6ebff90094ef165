"""Would it start now? The scheduler's own plan, asked about a training that nobody has submitted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from aiplatform.lib.errors import DomainError
from training.services import drafts
from workers.models import Device, Node, VirtualCluster
from workers.scheduler import plan, reasons, snapshot
from workers.scheduler.fit import can_ever_fit
from workers.services import picture

ASKED = 0  # no job has this number


@dataclass(frozen=True)
class Verdict:
    """`kind` is now, waits, never or unknown; `sentence` says it to people."""

    kind: Literal["now", "waits", "never", "unknown"]
    sentence: str
    detail: str = ""
    eta: datetime | None = None
    field: str = ""  # what to change when it never fits


def look(
    *, user: User, cluster: VirtualCluster | None, nodes: int, gpus_per_node: int, cpus: float, priority: int = 0
) -> Verdict:
    """What the scheduler would do with this request at this moment."""
    try:
        cluster = drafts.cluster_for(user, cluster)
    except DomainError as exc:
        return Verdict("never", exc.message, field="cluster")
    moment = now()
    request = picture.request_of(nodes, gpus_per_node, cpus)
    machines, cards = picture.machines(), picture.devices()
    if not any(machine.accepts for machine in machines):
        return Verdict("waits", _("No machine is up at the moment. The training would wait for one."))
    never = can_ever_fit(request, machines, cards, picture.cluster_of(cluster))
    if never:
        return Verdict("never", reasons.sentence(never.code, never.args), field=never.field)
    seen = picture.read(moment, picture.read_usage(moment), picture.read_typical(moment))
    mine = snapshot.Waiting(ASKED, user.pk, cluster.pk, request, moment.timestamp(), priority)
    asked = snapshot.Snapshot(
        seen.nodes, seen.devices, seen.clusters, seen.running, (*seen.waiting, mine), seen.usage, seen.cluster_usage,
        seen.typical_runtime,
    )  # fmt: skip
    decided = plan.plan(asked, moment.timestamp())
    for assignment in decided.assignments:
        if assignment.job == ASKED:
            names = {
                node.pk: node.name for node in Node.objects.filter(pk__in=[place[0] for place in assignment.places])
            }
            where = ", ".join(names.get(place[0], "") for place in assignment.places)
            return Verdict("now", _("Fits now on %(where)s.") % {"where": where}, _free(gpus_per_node))
    wait = decided.waits.get(ASKED)
    if wait is None:
        return Verdict("waits", _("Would wait."))
    place = _("Place %(position)s in the queue.") % {"position": wait.position}
    eta = datetime.fromtimestamp(wait.eta, UTC) if wait.eta else None
    return Verdict("waits", reasons.sentence(wait.code, wait.args) or _("Would wait."), place, eta)


def _free(gpus: int) -> str:
    """How much is free on machines that take work."""
    rows = Device.objects.filter(node__state=Node.State.LIVE, health=Device.Health.OK)
    if gpus:
        cards = [row.used == 0 for row in rows.filter(kind=Device.Kind.GPU)]
        facts = {"free": sum(cards), "all": len(cards)}
        return ngettext("%(free)s of %(all)s card free", "%(free)s of %(all)s cards free", len(cards)) % facts
    free = sum(row.capacity - row.used for row in rows.filter(kind=Device.Kind.CPU))
    return _("%(free)s processor slots free") % {"free": free // snapshot.FULL_CARD}
