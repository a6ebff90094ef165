"""Which server gets a request, and what is counted of it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from inference.serving import endpoints
from inference.serving.addresses import Place, place
from inference.serving.keys.callers import Caller, asks
from inference.serving.models import Service, ServiceTrial
from inference.serving.traffic import differences, trials
from inference.serving.traffic.agreement import agreement
from inference.serving.traffic.counters import COUNTER, Slot
from workers.access.proxy.forwarding import Copy, Done, Load, Scope, Upstream
from workers.core.models import Job
from workers.core.states import JobState

CALLER = b"x-client-id"  # who distinguishes its own callers, so that each stays with one model of an A/B test


@dataclass(frozen=True)
class Split:
    """What a caller's requests of the next second go by."""

    service: Service
    caller: Caller
    own: Sequence[Upstream]
    trial: ServiceTrial | None
    tried: Upstream | None

    def __call__(self, scope: Scope, path: str) -> Upstream:
        """Choose for one request."""
        if not asks(path):
            return self._least_loaded()
        trial, tried = self.trial, self.tried
        if trial is None or tried is None or _is_excluded(tried, time.monotonic()):
            return self._least_loaded().counted(self._count_when_done(candidate=False))
        if trial.mode == ServiceTrial.Mode.SHADOW:
            shadow = self._copy(tried) if random.random() * 100 < trial.percent else None  # noqa: S311  no secret
            return self._least_loaded().counted(self._count_when_done(candidate=False), shadow)
        if self._reaches(trial, scope):
            return tried.counted(self._count_when_done(candidate=True))
        return self._least_loaded().counted(self._count_when_done(candidate=False))

    def _least_loaded(self) -> Upstream:
        """Return the server with the fewest pending requests of this process, among equals any."""
        moment = time.monotonic()
        return min(self.own, key=lambda row: (_is_excluded(row, moment), _under_way(row), random.random()))  # noqa: S311  no secret

    def _reaches(self, trial: ServiceTrial, scope: Scope) -> bool:
        if trial.mode == ServiceTrial.Mode.CANARY:
            return random.random() * 100 < trial.percent  # noqa: S311  no secret
        named = next((value for name, value in scope["headers"] if name == CALLER), b"")
        drawn = sha256(b"%d:%s:%s" % (trial.pk, self.caller.name.encode(), named)).digest()
        return int.from_bytes(drawn[:4], "big") / 2**32 * 100 < trial.percent

    def _slot(self, *, candidate: bool) -> Slot:
        trial = self.trial if self.tried is not None else None
        version = trial.version_id if trial is not None and candidate else self.service.model_version_id
        return Slot(
            self.service.pk, version or 0, trial.pk if trial else 0, candidate, self.caller.user, self.caller.key
        )

    def _count_when_done(self, *, candidate: bool) -> Done:
        return partial(_count, self._slot(candidate=candidate))

    def _copy(self, tried: Upstream) -> Copy:
        slot = self._slot(candidate=True)

        async def answered(request_body: bytes, response_body: bytes, other: bytes) -> None:
            agreed = await asyncio.to_thread(agreement, response_body, other)
            if agreed is not None:
                COUNTER.count_comparison(slot, agreed)
                await differences.sample_disagreement(self.service, agreed, request_body, response_body)

        return Copy(tried.counted(partial(_count, slot)), answered)


def _count(slot: Slot, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
    COUNTER.count_response(slot, status, seconds, bytes_in, bytes_out)
    COUNTER.flush_soon()


def split(service: Service, caller: Caller, own: Sequence[Upstream]) -> Split:
    """How a caller's requests are split now; `own` are the servers of the version that the service has."""
    trial = trials.current(service)
    tried = None
    if trial is not None and trial.job is not None and trial.answers and trials.may_be_used(trial):
        where = place(trial.job, service.pk, trial.version_id)
        if where is not None:
            tried = _upstream(trial.job, where)
    return Split(service, caller, own, trial, tried)


def servers(service: Service) -> list[Upstream]:
    """Return the servers with the current version of a service, its first one first; that may still be starting."""
    job = service.job
    running = job is not None and job.state == JobState.RUNNING
    where = place(job, service.pk, service.model_version_id) if job is not None and running else None
    first = []
    if job is not None and where is not None:
        ready = None if service.answers else partial(endpoints.remember_ready, service, job.attempt_number)
        first.append(_upstream(job, where, ready))
    others_ = others(service)
    return [*others_, *first] if first and not service.answers else [*first, *others_]


def others(service: Service) -> list[Upstream]:
    """The further servers that answer with the version that a service has."""
    if not service.options.get("max_replicas", 1) > 1:
        return []
    rows = service.replicas.filter(leaving_at=None, version=service.model_version_id).select_related("job")
    places = [(row.job, place(row.job, service.pk, row.version_id)) for row in rows if row.answers]
    return [_upstream(job, where) for job, where in places if where is not None]


def _upstream(job: Job, where: Place, on_success: Callable[[], None] | None = None) -> Upstream:
    headers = ((endpoints.KEY_HEADER, endpoints.key_for(job.pk, job.attempt_number)),)
    return Upstream(
        where.host, where.port, headers=headers, on_success=on_success, load=_load(where), prefix=where.prefix
    )


_loads: dict[Place, Load] = {}
_MAX_LOADS = 2000


def _load(where: Place) -> Load:
    """Return the pending requests at an address, by this process."""
    if len(_loads) > _MAX_LOADS:
        for gone in [idle for idle, load in list(_loads.items()) if not load.under_way]:
            _loads.pop(gone, None)
    return _loads.setdefault(where, Load())


def _is_excluded(upstream: Upstream, moment: float) -> bool:
    return upstream.load is not None and upstream.load.away_until > moment


def _under_way(upstream: Upstream) -> int:
    return upstream.load.under_way if upstream.load is not None else 0
