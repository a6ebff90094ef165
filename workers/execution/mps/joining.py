"""Joining: lets a job on a share of a card use it through its person's MPS daemon, or notes why it does not.

Without MPS the programs on a card take turns, and nothing else changes for a job: whatever is missing is a reason that
the machine's page shows, never a failure of the job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core.models import Allocation, Attempt, Device
from workers.execution.mps.daemon import Daemon, Unavailable
from workers.resources.nodes.telemetry import nvml
from workers.resources.nodes.telemetry.probe import Sharing
from workers.supervisor import sandbox

log = logging.getLogger(__name__)

MIN_COMPUTE_CAPABILITY, LIMITS_FROM = (3, 5), (7, 0)
"""Compute capabilities from which MPS works, and from which it holds each client to limits of its own (Volta)."""
MAX_CLIENTS, MAX_CLIENTS_BEFORE_VOLTA = 48, 16
"""Clients of one daemon on a card, from Volta on and before: https://docs.nvidia.com/deploy/mps/when-to-use-mps.html"""


@dataclass(frozen=True)
class Client:
    """What a job is given of the daemon. `limited`: its card holds it to its share; `shm`: None without a sandbox."""

    pipe: Path
    shm: Path | None
    limited: bool


def shared_card(held: Iterable[Allocation]) -> Allocation | None:
    """The part of a GPU among what a rank holds; None where it holds whole ones, or none."""
    cards = (a for a in held if a.device.kind == Device.Kind.GPU)
    return next((a for a in cards if a.share < a.device.capacity), None)


def join(attempt: Attempt, held: list[Allocation], *, uid: int, tier: int, bwrap: str) -> Client | None:
    """Let the rank be a client where the machine's operator allows it and it can; safe to call again.

    Args:
        uid: the user it runs as; 0 is the platform's own.
        tier: its sandbox; from bubblewrap on daemon and jobs share a folder in place of /dev/shm.
    """
    part = shared_card(held)
    if part is None or not part.node.mps:
        return None
    try:
        client = _join(attempt, part, uid, tier, bwrap)
    except Unavailable as why:
        refusal = wording.of_error(why)
        log.warning("job=%s attempt=%s shares its card without MPS: %s", attempt.job_id, attempt.number, refusal)
        Allocation.objects.filter(pk=part.pk).update(mps=False, mps_refusal=refusal)
        return None
    return client


def _join(attempt: Attempt, part: Allocation, uid: int, tier: int, bwrap: str) -> Client:
    capabilities = check_card(part.device, tier)
    daemon = Daemon(attempt.job.owner_id)
    shares_memory = tier >= sandbox.BUBBLEWRAP
    with daemon.locked():
        daemon.ensure(uid, usable(part.node.devices.all(), tier), bwrap if shares_memory else "")
        limit = MAX_CLIENTS if capabilities.capability >= LIMITS_FROM else MAX_CLIENTS_BEFORE_VOLTA
        if clients_on(daemon, part) >= limit:
            raise Unavailable(wording.message("mps.full", card=part.device.index, most=limit))
        # while the lock is held: who ends daemons without clients looks at these rows
        Allocation.objects.filter(pk=part.pk).update(mps=True, mps_refusal=Message())
    return Client(daemon.pipe, daemon.shm if shares_memory else None, capabilities.capability >= LIMITS_FROM)


def check_card(card: Device, tier: int) -> Sharing:
    """Return the sharing capabilities of a GPU that MPS may share.

    Raises:
        Unavailable: it may not be, with the reason.
    """
    if tier >= sandbox.CONTAINER:
        raise Unavailable(wording.message("mps.container"))
    if card.simulated:
        raise Unavailable(wording.message("mps.simulated", card=card.index))
    if card.parent is not None:
        raise Unavailable(wording.message("mps.slice", card=card.index))
    capabilities = nvml.sharing(card.uuid)
    if capabilities is None:
        raise Unavailable(wording.message("mps.silent", card=card.index))
    if capabilities.capability < MIN_COMPUTE_CAPABILITY:
        has = ".".join(map(str, capabilities.capability))
        raise Unavailable(wording.message("mps.old_card", card=card.index, has=has))
    if capabilities.mode != "default":
        raise Unavailable(wording.message("mps.exclusive", card=card.index))
    return capabilities


def usable(cards: Iterable[Device], tier: int) -> list[str]:
    """Unique ids of the GPUs to show to a daemon: one that MPS cannot use keeps its server from starting."""
    uuids = []
    for card in cards:
        if card.kind == Device.Kind.GPU and card.health != Device.Health.GONE:
            try:
                check_card(card, tier)
            except Unavailable:
                continue
            uuids.append(card.uuid)
    return uuids


def clients_on(daemon: Daemon, part: Allocation) -> int:
    """Number of other clients that a daemon has on a GPU: running programs or admitted jobs, whichever is larger."""
    let_in = Allocation.objects.filter(
        device=part.device_id, mps=True, released_at=None, attempt__job__owner=daemon.owner
    ).exclude(pk=part.pk)
    running = [program for program in daemon.programs() or [] if program.is_on(part.device.uuid)]
    return max(len(running), let_in.count())
