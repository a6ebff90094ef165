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


def remove(home: Path) -> bool:
    """Remove the container of a rank whose supervisor is dead; return whether none of it can run any more.

    True as well where it ran in none. Where the engine does not answer, the kernel's word on its first process
    counts: without that process nothing of it is left.
    """
    supervisor = records.read(home / records.SUPERVISOR) or {}
    container_record = supervisor.get("container")
    if not container_record:
        return True
    try:
        Engine(container_record["engine"], ANSWER_S).remove(container_record["name"])
    except OSError as exc:
        if supervisor.get("boot_id") != records.boot_id():
            return True
        child = supervisor.get("child")
        if child and not records.is_alive({**child, "boot_id": supervisor["boot_id"]}):
            return True
        log.warning("container=%s may still run and cannot be ended: %s", container_record["name"], exc)
        return False
    return True


class Ending:
    """Repeats `remove` for one attempt every few seconds, in a thread: an engine that hangs delays no other attempt."""

    def __init__(self) -> None:
        self._next = float("-inf")

    def ended(self, home: Path) -> bool:
        """Whether nothing of its container can run any more; False also while it is too early to ask again."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + ASK_AGAIN_S
        return remove(home)


def sweep() -> int:
    """Remove this platform's containers that are no longer kept; return their number."""
    removed = 0
    for path in engines.sockets(env.CONTAINER_SOCKET):
        engine = Engine(path, ANSWER_S)
        try:
            left = engine.labelled(f"{container.LABEL}={settings.DATA_ROOT}")
            for row in left:
                labels = row.get("Labels") or {}
                if container.is_kept(container.supervisor_of(labels)):
                    continue
                engine.remove(row["Id"])
                log.warning("container=%s job=%s had no supervisor, removed", row["Id"][:12], labels.get("aip.job"))
                removed += 1
        except OSError as exc:
            log.info("engine=%s containers not looked through: %s", path, exc)
    return removed
