"""Unkillable processes: what even KILL did not end keeps its machine from new work until somebody restarted it.

They wait in the kernel for a disk or a driver and may still hold cards. The list stands in the machine's facts; its
agent strikes from it what has died after all, and an alarm lasts as long as anything stands there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.db import transaction

from aiplatform.lib import wording
from workers.core.models import Job, Node
from workers.resources.nodes import lifecycle
from workers.supervisor import records

log = logging.getLogger(__name__)

FACT = "unkillable"


@transaction.atomic
def report(name: str, job: Job, pids: Iterable[int]) -> int:
    """Note the processes of a job on the machine `name` that nothing ends, and drain it; return how many are new."""
    pids = list(pids)
    if not pids:
        return 0
    node = Node.objects.select_for_update().get(name=name)
    entries = living(node.facts)
    boot = records.boot_id()
    noted = {entry["pid"] for entry in entries}
    new = [
        {"pid": pid, "start_ticks": ticks, "boot_id": boot, "job": job.pk}
        for pid in pids
        if pid not in noted and (ticks := records.start_ticks(pid)) is not None
    ]
    if not new:
        return 0
    Node.objects.filter(pk=node.pk).update(facts={**node.facts, FACT: [*entries, *new]})
    log.error("node=%s job=%s processes=%s cannot be killed", name, job.pk, [entry["pid"] for entry in new])
    message = wording.message("node.unkillable", job=job.pk, processes=[str(entry["pid"]) for entry in new])
    lifecycle.record(node, "unkillable", message)
    lifecycle.drain(node)
    return len(new)


def living(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a machine's noted processes that live on. Only its own agent can tell."""
    return [entry for entry in facts.get(FACT, []) if records.is_alive(entry)]
