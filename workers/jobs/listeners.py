"""Rooms above that make jobs as parts of something larger: they hear of each that is over, and speak for it.

A listener is registered once from its app's `AppConfig.ready()`. What it does must be safe to repeat and quick: a row
or a nudge.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from aiplatform.lib.registry import Registry
from workers.core.models import Job

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """One room that makes jobs.

    Attributes:
        ended: called once a job is over and its results are kept; may be called again.
        speaks_for: whether the owner need not be told of the end of this job: the listener tells of the whole.
    """

    name: str
    ended: Callable[[Job], None]
    speaks_for: Callable[[Job], bool] = lambda _job: False


LISTENERS: Registry[Listener] = Registry("listener of ended jobs")
register = LISTENERS.register


def notify_ended(job: Job) -> None:
    """Notify all listeners that a job is over. One that fails is logged; its own sweep makes up for it."""
    for listener in LISTENERS:
        try:
            listener.ended(job)
        except Exception:
            log.exception("job=%s its listener %s broke", job.pk, listener.name)


def speak_for(job: Job) -> bool:
    """Whether one of them tells of the end of this job itself."""
    return any(listener.speaks_for(job) for listener in LISTENERS)
