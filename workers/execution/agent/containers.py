"""Orphaned containers: those whose supervisor is gone are ended before their job counts as lost."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from django.conf import settings

from aiplatform import env
from workers.supervisor import container, engines, records
from workers.supervisor.engine import Engine

log = logging.getLogger(__name__)

ANSWER_S = 5.0
ASK_AGAIN_S = 5.0


def gone(home: Path) -> bool:
    """End the container of a rank whose supervisor is dead; whether none of it can run any more.

    True as well where it ran in none. Where the engine does not answer, the kernel's word on its first process
    counts: without that process nothing of it is left.
    """
    kept = records.read(home / records.SUPERVISOR) or {}
    about = kept.get("container")
    if not about:
        return True
    try:
        Engine(about["engine"], ANSWER_S).remove(about["name"])
    except OSError as exc:
        if kept.get("boot_id") != records.boot_id():
            return True
        child = kept.get("child")
        if child and not records.is_alive({**child, "boot_id": kept["boot_id"]}):
            return True
        log.warning("container=%s may still run and cannot be ended: %s", about["name"], exc)
        return False
    return True


class Ending:
    """Repeats `gone` for one attempt every few seconds, in a thread: an engine that hangs holds up no other attempt."""

    def __init__(self) -> None:
        self._next = float("-inf")

    def ended(self, home: Path) -> bool:
        """Whether nothing of its container can run any more; False also while it is too early to ask again."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + ASK_AGAIN_S
        return gone(home)


def sweep() -> int:
    """Remove this platform's containers that nobody keeps any more; return how many."""
    removed = 0
    for place in engines.sockets(env.CONTAINER_SOCKET):
        engine = Engine(place, ANSWER_S)
        try:
            left = engine.labelled(f"{container.LABEL}={settings.DATA_ROOT}")
            for one in left:
                labels = one.get("Labels") or {}
                if container.is_kept(container.supervisor_of(labels)):
                    continue
                engine.remove(one["Id"])
                log.warning("container=%s job=%s had no supervisor, removed", one["Id"][:12], labels.get("aip.job"))
                removed += 1
        except OSError as exc:
            log.info("engine=%s containers not looked through: %s", place, exc)
    return removed
