"""What a study may use, as people say it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals

MAX_TRIALS, MAX_PARALLEL_TRIALS = 1000, 100
MAX_DAYS = 365


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a study may use.

    Args:
        max_trials: all that begin.
        at_once: trials that go on beside each other; what finds no free cards waits in the queue.
        time_limit: from its start; then no new trial begins, and those that run end by themselves. None: none.
        hours_limit: card-hours of all its trials, of trainings without cards core-hours; as above.
        target: a value of the first objective that is good enough.
    """

    max_trials: int = 20
    at_once: int = 2
    time_limit: timedelta | None = None
    hours_limit: float | None = None
    target: float | None = None


def check_limits(limits: Limits) -> None:
    """Refuse limits that are out of range.

    Raises:
        Invalid: naming each of them.
    """
    refusals = Refusals()
    with refusals:
        if not 1 <= limits.max_trials <= MAX_TRIALS:
            raise Invalid(_("Must be 1 to %(most)s trials.") % {"most": MAX_TRIALS}, field="max_trials")
    with refusals:
        if not 1 <= limits.at_once <= MAX_PARALLEL_TRIALS:
            raise Invalid(_("Must be 1 to %(most)s parallel trials.") % {"most": MAX_PARALLEL_TRIALS}, field="at_once")
    with refusals:
        if limits.time_limit is not None and not timedelta(0) < limits.time_limit <= timedelta(days=MAX_DAYS):
            raise Invalid(
                _("The time must be more than 0 and at most %(most)s days.") % {"most": MAX_DAYS}, field="time_limit_s"
            )
    with refusals:
        if limits.hours_limit is not None and not 0 < limits.hours_limit <= 1e6:
            raise Invalid(_("GPU-hours must be a number above 0 and at most 1000000."), field="hours_limit")
    with refusals:
        if limits.target is not None and not math.isfinite(limits.target):
            raise Invalid(_("The target must be a number."), field="target")
    refusals.end()
