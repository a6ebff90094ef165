"""MPS watch: starts daemons that died again, ends those without clients, and tells the machine's page of them."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core.models import Allocation, Device, Node
from workers.execution import job_users, measurement_jobs, tickets
from workers.execution.mps import daemon as daemons
from workers.execution.mps import joining
from workers.execution.mps.daemon import Daemon, Unavailable
from workers.jobs import transitions
from workers.resources.nodes import lifecycle
from workers.supervisor import sandbox

log = logging.getLogger(__name__)


class MpsWatch:
    """One per agent. `facts` is what the node's row says; {} on a node without GPUs."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}

    def check(self, name: str) -> None:
        """Reconcile the daemons with the jobs of this node that are their clients."""
        node = Node.objects.filter(name=name).first()
        if node is None:
            return
        clients: dict[int, list[Allocation]] = defaultdict(list)
        live = Allocation.objects.filter(node=node, mps=True, released_at=None).select_related("attempt__job", "device")
        for row in live:
            clients[row.attempt.job.owner_id].append(row)
        here = [owner for owner in daemons.owners() if owner != measurement_jobs.OWNER and Daemon(owner).has_folders()]
        states = [_reconcile(node, Daemon(owner)) for owner in sorted({*here, *clients})]
        running = [item for item in states if item]
        gpus = node.devices.filter(kind=Device.Kind.GPU).exclude(health=Device.Health.GONE)
        if not (node.mps or running or gpus.exists()):
            self.facts = {}
            return
        # also while MPS is off: whoever switches it on is refused with the reason
        self.facts = {"obstacles": [why.as_json() for why in obstacles(node)], "daemons": running}


def obstacles(node: Node) -> list[Message]:
    """Why jobs on shares of this node's GPUs would not use MPS now; empty where all would."""
    if not daemons.program():
        return [wording.message("mps.no_program")]
    messages, tier = [], tickets.tier()[0]
    for card in node.devices.filter(kind=Device.Kind.GPU).exclude(health=Device.Health.GONE):
        try:
            joining.check_card(card, tier)
        except Unavailable as why:
            messages.append(wording.of_error(why))
    return messages


def _reconcile(node: Node, daemon: Daemon) -> dict[str, Any] | None:
    """End, restart or leave one daemon; return its state to report, None where it has ended."""
    try:
        with daemon.locked():
            # read again under the lock: somebody may have joined just now
            rows = Allocation.objects.filter(
                node=node, mps=True, released_at=None, attempt__job__owner=daemon.owner
            ).select_related("attempt__job")
            clients = list(rows)
            if not clients:
                daemon.end()
                return None
            if not daemon.is_alive():
                _restart(node, daemon, clients)
    except Unavailable as why:
        log.warning("node=%s owner=%s MPS daemon not started again: %s", node.name, daemon.owner, why)
        return {"owner": daemon.owner, "programs": None, "why": wording.of_error(why).as_json()}
    programs = daemon.programs()
    return {"owner": daemon.owner, "programs": None if programs is None else len(programs)}


def _restart(node: Node, daemon: Daemon, clients: list[Allocation]) -> None:
    """Start a daemon that ended by itself again, and say so once: programs that used it may fail, new ones need it."""
    uid = daemon.uid if daemon.has_folders() else job_users.uid_of(daemon.owner)
    if daemon.was_started():
        log.warning("node=%s owner=%s MPS daemon ended by itself, clients=%s", node.name, daemon.owner, len(clients))
        daemon.forget()
        lifecycle.record(
            node, "mps_ended", wording.message("node.mps_ended", jobs=[str(r.attempt.job_id) for r in clients])
        )
        for row in clients:
            transitions.note(row.attempt.job, "mps_lost", wording.message("job.mps_lost"))
    tier, bwrap = tickets.tier()
    cards = joining.usable(node.devices.all(), tier)
    daemon.ensure(uid, cards, bwrap if tier >= sandbox.BUBBLEWRAP else "")
