"""Card sharing: warns and ends jobs that take more card memory than their share, and notes cards that do nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core import kinds
from workers.core.models import Attempt, Device
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.core.states import Reason
from workers.execution.agent.ranks import RankRun
from workers.jobs import actions, transitions

log = logging.getLogger(__name__)

WARN_AT, END_AT = 1.0, 1.1
"""Parts of a share's memory at which its owner is warned, and beyond which the job is ended."""
TIMEOUT_S = 30.0
BUSY_PERCENT = 1.0
NOTED_EVERY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Use:
    """Memory of one card that one attempt holds, and what its share of it allows, in MiB."""

    attempt: int
    card: int
    held_mib: float
    allowed_mib: float


class Breaches:
    """Who holds more than a share for how long. `judge` is called at every reading; pure but for its memory."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], float] = {}
        self._warned: set[tuple[int, int]] = set()

    def judge(self, uses: Iterable[Use], at_s: float) -> tuple[list[Use], list[Use]]:
        """(whom to warn, once each; whom to end, who stayed over the limit for `PATIENCE_S`).

        Args:
            at_s: monotonic seconds.
        """
        warn, end, keys = [], [], set()
        for use in uses:
            key = (use.attempt, use.card)
            keys.add(key)
            if use.held_mib >= WARN_AT * use.allowed_mib and key not in self._warned:
                self._warned.add(key)
                warn.append(use)
            if use.held_mib <= END_AT * use.allowed_mib:
                self._since.pop(key, None)
            elif at_s - self._since.setdefault(key, at_s) >= TIMEOUT_S:
                end.append(use)
        self._warned &= keys
        self._since = {key: since for key, since in self._since.items() if key in keys}
        return warn, end


class CardMonitor:
    """One per agent; `check` follows every sample of the cards."""

    def __init__(self) -> None:
        self.breaches = Breaches()

    def check(
        self, here: Mapping[int, RankRun], sampled: Mapping[int, Mapping[str, float]], at: datetime, at_s: float
    ) -> None:
        """Limit jobs to their shares of this node's devices, and record which of them compute.

        Args:
            here: what runs on this node, by attempt.
            sampled: figures of each attempt, as `sampler.Sample.jobs`.
        """
        shared: list[Use] = []
        for pk, figures in sampled.items():
            _note_busy(here[pk].attempt, figures, at)
            if here[pk].attempt.job.share < SHARES_PER_DEVICE:
                shared += _uses(here[pk], figures)
        warn, end = self.breaches.judge(shared, at_s)
        for use in warn:
            _warn(here[use.attempt].attempt, use)
        for use in end:
            _end(here[use.attempt].attempt, use)


def _note_busy(attempt: Attempt, figures: Mapping[str, float], at: datetime) -> None:
    """Note when a job last computed; cards that report nothing count as busy."""
    loads = [value for key, value in figures.items() if key.startswith("system/gpu") and key.endswith("_util")]
    if loads and max(loads) < BUSY_PERCENT and attempt.busy_at is not None:
        return
    if attempt.busy_at is None or at - attempt.busy_at >= NOTED_EVERY:
        Attempt.objects.filter(pk=attempt.pk).filter(Q(busy_at=None) | Q(busy_at__lt=at)).update(busy_at=at)


def _uses(part: RankRun, figures: Mapping[str, float]) -> list[Use]:
    uses = []
    for row in part.held:
        card, used = row.device, figures.get(f"system/gpu{row.device.index}_own_mib")
        if card.kind == Device.Kind.GPU and used is not None and card.memory_mib:
            uses.append(Use(part.attempt.pk, card.index, used, card.memory_mib * row.share / SHARES_PER_DEVICE))
    return uses


def _warn(attempt: Attempt, use: Use) -> None:
    facts = {"card": use.card, "held_mib": use.held_mib, "allowed_mib": use.allowed_mib}
    job = attempt.job
    transitions.note(job, "share_warned", wording.message("job.share_reached", **facts))
    notify(
        job.owner,
        "quota",
        title=wording.message("news.share_reached", name=job.name),
        text=wording.message("news.share_ends", **facts),
        url=kinds.url_of(job),
        key=f"share-{job.pk}-{attempt.number}",
    )


def _end(attempt: Attempt, use: Use) -> None:
    facts = {"card": use.card, "held_mib": use.held_mib, "allowed_mib": use.allowed_mib}
    log.warning("job=%s attempt=%s over its share of a card, ended: %s", attempt.job_id, attempt.number, facts)
    try:
        actions.stop(attempt.job, reason=Reason.OUT_OF_MEMORY, message=wording.message("job.share_exceeded", **facts))
    except DomainError as exc:
        log.info("job=%s not ended: %s", attempt.job_id, exc)
