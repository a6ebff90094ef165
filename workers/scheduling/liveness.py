"""Liveness of nodes by the server clock: suspect, unreachable, lost."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core import pins
from workers.core.models import Attempt, Node
from workers.core.states import Reason
from workers.execution import lost_attempts
from workers.resources.nodes import lifecycle

log = logging.getLogger(__name__)

SUSPECT = timedelta(seconds=env.NODE_SUSPECT_S)
UNREACHABLE = timedelta(seconds=env.NODE_UNREACHABLE_S)
_ELSEWHERE = wording.message("job.requeued_elsewhere")
LOST = timedelta(seconds=env.NODE_LOST_S)


def silent_nodes(moment: datetime, watched: timedelta = timedelta.max) -> list[str]:
    """Set every node's state by its last heartbeat; return the names of those that were just given up.

    After 15 s a node gets no new work, after 60 s it shows as unreachable and keeps its cards, after
    10 minutes its attempts are lost and their jobs queue again, from their newest checkpoint. One that
    is heard again is live again, or drains where that was requested.

    Args:
        watched: for how long we have been listening without a gap. While scheduler or database were away nobody
            could be heard, so no node is given up that had less time to be heard than a silent one has.
    """
    given_up = []
    for node in Node.objects.exclude(state=Node.State.REMOVED):
        silence = moment - node.heartbeat_at
        state = _judged(node, silence, watched)
        if state == node.state:
            continue
        if not Node.objects.filter(pk=node.pk, state=node.state).update(state=state):
            continue
        log.warning("node=%s %s after %.0f s of silence", node.name, state, silence.total_seconds())
        if state not in (Node.State.SUSPECT, Node.State.DRAINING):  # a late heartbeat is no news
            _record_state(node, state, silence)
        if state == Node.State.LOST:
            given_up.append(node.name)
    for node in Node.objects.filter(state=Node.State.LOST):
        _give_up(node)
    return given_up


def _judged(node: Node, silence: timedelta, watched: timedelta) -> str:
    if silence >= LOST and (watched >= LOST or node.state == Node.State.LOST):
        return Node.State.LOST
    if silence >= UNREACHABLE:
        return Node.State.UNREACHABLE
    if silence >= SUSPECT:
        return Node.State.SUSPECT
    return Node.State.DRAINING if node.drain else Node.State.LIVE


def _record_state(node: Node, state: str, silence: timedelta) -> None:
    """Add to the node's event log that it went silent, or reports again."""
    if state != Node.State.LIVE:
        lifecycle.record(node, state, wording.message("node.silent", seconds=round(silence.total_seconds())))
    elif node.state != Node.State.SUSPECT:
        lifecycle.record(node, state, wording.message("node.heard_again"))


def _give_up(node: Node) -> None:
    """End what a lost node still holds; jobs without a requested end are queued again."""
    held = Attempt.objects.filter(ended_at=None, allocations__node=node, allocations__released_at=None).distinct()
    for attempt in held.select_related("job"):
        message = wording.message("job.machine_silent", node=node.name)
        stays = pins.of_job(attempt.job) == node.name
        again = wording.message("job.requeued_same", node=node.name) if stays else _ELSEWHERE
        try:
            lost_attempts.lose(attempt, reason=Reason.NODE_LOST, message=message, again=again, at_most=None)
        except DomainError as exc:
            log.info("job=%s not given up: %s", attempt.job_id, exc)
