"""Which server gets a request, and what is counted of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from inference.keys.asking import Caller, asks
from inference.models import Service
from inference.services import serving
from inference.traffic import trials
from inference.traffic.agreeing import agreement
from inference.traffic.counting import COUNTER, Slot
from inference.traffic.tables import ServiceTrial
from workers.proxy import endpoints
from workers.proxy.forwarding import Copy, Done, Scope, Upstream

CALLER = b"x-client-id"  # who tells its own callers apart, so that each stays with one model of an A/B test


@dataclass(frozen=True)
class Split:
    """What a caller's requests of the next second go by."""

    service: Service
    caller: Caller
    own: Upstream
    trial: ServiceTrial | None
    tried: Upstream | None

    def __call__(self, scope: Scope, path: str) -> Upstream:
        """Choose for one request."""
        if not asks(path):
            return self.own
        trial, tried = self.trial, self.tried
        if trial is None or tried is None:
            return self.own.counted(self._counted(candidate=False))
        if trial.mode == ServiceTrial.Mode.SHADOW:
            shadow = self._copy(tried) if random.random() * 100 < trial.percent else None  # noqa: S311  no secret
            return self.own.counted(self._counted(candidate=False), shadow)
        if self._reaches(trial, scope):
            return tried.counted(self._counted(candidate=True))
        return self.own.counted(self._counted(candidate=False))

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

    def _counted(self, *, candidate: bool) -> Done:
        return partial(_count, self._slot(candidate=candidate))

    def _copy(self, tried: Upstream) -> Copy:
        slot = self._slot(candidate=True)

        def answered(given: bytes, other: bytes) -> None:
            agreed = agreement(given, other)
            if agreed is not None:
                COUNTER.compared(slot, agreed)

        return Copy(tried.counted(partial(_count, slot)), answered)


def _count(slot: Slot, status: int, seconds: float, bytes_in: int, bytes_out: int) -> None:
    COUNTER.answered(slot, status, seconds, bytes_in, bytes_out)
    COUNTER.flush_soon()


def split(service: Service, caller: Caller, own: Upstream) -> Split:
    """How a caller's requests are split now; `own` is the server that the service has."""
    trial = trials.current(service)
    tried = None
    if trial is not None and trial.job is not None and trial.answers and trials.may_be_used(trial):
        place = endpoints.endpoint(trial.job)
        if place is not None:
            key = serving.key_for(trial.job.pk, trial.job.attempt_number)
            tried = Upstream(*place, headers=((serving.KEY_HEADER, key),))
    return Split(service, caller, own, trial, tried)
