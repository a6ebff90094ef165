"""Jobs that an alarm affects: those that hold devices of its node, its device, or that it names."""

from __future__ import annotations

import re

from django.db.models import Q

from workers.core.models import Alarm, Allocation, Job

AFFECTING_RULES = frozenset({
    "node_silent", "disk_full", "unkillable", "gpu_gone", "gpu_sick", "external_process", "gpu_hot", "gpu_idle",
    "service_restarts",
})  # fmt: skip
"""Rules that tell owners something about their jobs; a node under full load, for example, is normal for them."""
_DEVICE = re.compile(r"(?P<node>.+) (?P<kind>[a-z]+)(?P<index>\d+)")
_JOB = re.compile(r"job (?P<number>\d+)")


def of_alarm(alarm: Alarm) -> list[Job]:
    """Return the jobs with their owners, in the order of their numbers; none for rules that affect no single job."""
    if alarm.rule.key not in AFFECTING_RULES:
        return []
    if named := _JOB.fullmatch(alarm.subject):
        return list(Job.objects.filter(pk=int(named["number"])).select_related("owner"))
    where = Q(node__name=alarm.subject)
    if device := _DEVICE.fullmatch(alarm.subject):
        index = int(device["index"])
        where |= Q(node__name=device["node"], device__kind=device["kind"], device__index=index)
    held = Allocation.objects.filter(where, released_at=None)
    jobs = Job.objects.filter(attempts__in=held.values("attempt"))
    return list(jobs.distinct().select_related("owner").order_by("pk"))
