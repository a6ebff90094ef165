"""Preview of a submission: the scheduler's own plan for a job that nobody has submitted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import DomainError, Refusals
from workers.core import kinds, wait_reasons
from workers.core.models import Device, Node
from workers.jobs import resource_request, submission
from workers.jobs.resource_request import Resources
from workers.planning import planner_input
from workers.planning.planner import snapshot
from workers.planning.planner.fit import Place
from workers.planning.planner.preview import ASKED, preview
from workers.scheduling import reading


@dataclass(frozen=True)
class Verdict:
    """`kind` is now, waits, never or unknown; `sentence` says it to people, with everything that never fits."""

    kind: Literal["now", "waits", "never", "unknown"]
    sentence: str
    detail: str = ""
    eta: datetime | None = None
    field: str = ""  # what to change first when it never fits


def preview_request(user: User, requested: Resources, *, kind: str, unclear: str = "") -> Verdict:
    """What the scheduler would do with this request now; nothing is written.

    Args:
        asked: as for `submission.submit`; a missing cluster is the person's current one.
        kind: name of the job kind, which may have machines kept for it and a limit of its own.
        unclear: what is wrong in the form the request comes from, see `ResourceForm.unclear`; then there is no answer.
    """
    if unclear:
        return Verdict("unknown", unclear)
    if "cpus" not in requested or "gpus_per_node" not in requested:
        return Verdict("unknown", _("Enter the number of GPUs and CPU cores."))
    try:
        cluster = resource_request.cluster_for(user, requested.get("cluster"))
        requested = _checked(user, kind, {**requested, "cluster": cluster})
    except DomainError as exc:
        return Verdict("never", exc.sentences, field=exc.blamed or "")
    moment = now()
    request = resource_request.request_of(requested)
    if not any(machine.accepts for machine in planner_input.machines()):
        return Verdict("waits", _("No node is available at the moment. The job would wait for one."))
    current = reading.snapshot(moment)
    span = requested.get("max_runtime")
    candidate = snapshot.Waiting(
        ASKED, user.pk, cluster.pk, request, moment.timestamp(), requested.get("priority", 0),
        span.total_seconds() if span else None, requested.get("preemptible", False), kind,
        counts_as=kinds.class_of(kind), answers_requests=kind in kinds.answering_requests(),
    )  # fmt: skip
    result = preview(current, candidate, moment.timestamp(), planner_input.POLICY)
    if result.never:
        reasons = " ".join(wait_reasons.sentence(never.code, never.args) for never in result.never)
        return Verdict("never", reasons, field=result.never[0].field)
    if result.wait is None:
        where = _fits(result.places) if user.can(Action.CLUSTER_VIEW) else _("Can start now.")
        return Verdict("now", where, _free(requested))
    if result.makes_room:
        return Verdict("waits", _("Other jobs would be preempted within one or two minutes."))
    wait = result.wait
    position = _("Position %(position)s in the queue.") % {"position": wait.position}
    eta = datetime.fromtimestamp(wait.eta, UTC) if wait.eta else None
    return Verdict("waits", wait_reasons.sentence(wait.code, wait.args) or _("Must wait."), position, eta)


def _checked(user: User, kind: str, requested: Resources) -> Resources:
    """The request as a job would get it.

    Raises:
        DomainError: everything that is wrong with its numbers, also what no machine could hold.
    """
    refusals = Refusals()
    with refusals:
        resource_request.check_shape(requested)
    shaped = not refusals
    with refusals:
        resource_request.check_priority(user, requested.get("priority", 0))
    if shaped:
        with refusals:
            requested = resource_request.bounded(requested)
        if refusals:
            with refusals:
                submission.check_fit(kind, **requested)
    refusals.end()
    return requested


def _fits(places: Iterable[Place]) -> str:
    ids = [node for node, _devices in places]
    names = dict(Node.objects.filter(pk__in=ids).values_list("pk", "name"))
    return _("Can start now on %(where)s.") % {"where": ", ".join(names.get(node, "") for node in ids)}


def _free(requested: Resources) -> str:
    """Return how much is free on nodes that accept work; of a share, the GPUs that have room for it."""
    rows = Device.objects.filter(node__state=Node.State.LIVE, health=Device.Health.OK)
    if requested["gpus_per_node"]:
        wanted = requested.get("share", snapshot.FULL_CARD)
        cards = [row.capacity - row.used >= wanted for row in rows.filter(kind=requested.get("device_kind", "gpu"))]
        facts = {"free": sum(cards), "all": len(cards), "asked": wanted}
        if wanted < snapshot.FULL_CARD:
            return _("%(free)s of %(all)s GPUs have %(asked)s/8 free.") % facts
        return ngettext("%(free)s of %(all)s GPU free", "%(free)s of %(all)s GPUs free", len(cards)) % facts
    free = snapshot.cards_of(sum(row.capacity - row.used for row in rows.filter(kind=Device.Kind.CPU)))
    return ngettext("%(free)s CPU slot free", "%(free)s CPU slots free", math.ceil(free)) % {"free": free}
