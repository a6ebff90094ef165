"""Wakes the agents of nodes early, so that they need not look at their jobs all the time.

A process on the same machine writes into a named pipe in the node's own folder: an attempt is being started there.
Any process publishes the numbers of jobs of which something is requested; every agent receives them through the
broker and ignores the jobs of other nodes. A lost message costs at most `agent.loop.FULL_LOOK_S`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import redis
from django.conf import settings

from aiplatform.lib import after_commit, nudging, redis_client

log = logging.getLogger(__name__)

CHANNEL = "aip:agents"
MESSAGES = 4096  # bytes read at once: one for each wake-up
STARTED, REQUESTED = b"s", b"r"
SEND_TIMEOUT_S = 0.5
SILENCE_S = 20.0  # without a message for so long the connection is checked; so long may the answer take
RECONNECT_S = 1.0


def _path(node: str) -> Path:
    return Path(settings.RUN_DIR) / f"agent-{node}.wake"


def notify(node: str, news: bytes = STARTED) -> None:
    """Wake the agent of this machine if it runs; it looks by itself otherwise.

    Args:
        news: `STARTED`, an attempt starts here; `REQUESTED`, `Requests` received something.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(_path(node), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(descriptor, news)
        finally:
            os.close(descriptor)


def request(job_id: int) -> None:
    """Let the agents that run a job read its row once the transaction commits."""
    after_commit.send(CHANNEL, job_id, _publish)


def _publish(job_ids: Sequence[int]) -> None:
    client = _client()
    if client is not None:
        nudging.attempt(lambda: client.publish(CHANNEL, " ".join(map(str, job_ids))), "request to agents")


@cache
def _client() -> redis.Redis | None:
    return None if _has_no_broker() else redis_client.connect(settings.REDIS_URL, timeout_s=SEND_TIMEOUT_S)


def _subscription(client: redis.Redis) -> Any:
    return client.pubsub()  # type: ignore[no-untyped-call]  # redis-py has no types there


def _has_no_broker() -> bool:
    return settings.CELERY_BROKER_URL.startswith("memory:")


class Pipe:
    """The agent's end of the named pipe."""

    def __init__(self, node: str) -> None:
        self.descriptor = -1
        """-1 where no pipe can be made."""
        path = _path(node)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_fifo():
                path.unlink(missing_ok=True)
                os.mkfifo(path, 0o600)
            # also for writing, so that it is never at its end
            self.descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Return what `notify` has written since the last call."""
        try:
            return os.read(self.descriptor, MESSAGES)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Requests:
    """Receives the numbers of jobs that `request` publishes, in a thread.

    Each time it wakes the agent of a node through its pipe.
    """

    def __init__(self, node: str) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._jobs: set[int] = set()
        self._lost = False

    def start(self, stopped: Callable[[], bool]) -> None:
        """Receive until `stopped`; without a broker nothing is received."""
        if not _has_no_broker():
            threading.Thread(target=self._run, args=[stopped], name="requests", daemon=True).start()

    def take_all(self) -> tuple[set[int], bool]:
        """Return the jobs since the last call, and whether messages may have been lost."""
        with self._lock:
            jobs, lost = self._jobs, self._lost
            self._jobs, self._lost = set(), False
        return jobs, lost

    def add(self, jobs: set[int], *, lost: bool = False) -> None:
        """Note jobs of which something is requested."""
        with self._lock:
            self._jobs |= jobs
            self._lost |= lost
        notify(self._node, REQUESTED)

    def _run(self, stopped: Callable[[], bool]) -> None:
        while not stopped():
            try:
                self._receive(stopped)
            except (redis.RedisError, OSError) as exc:
                log.info("no requests from the broker for now: %s", exc)
            except Exception:
                log.exception("requests from the broker are not received, the next try follows")
            time.sleep(RECONNECT_S)

    def _receive(self, stopped: Callable[[], bool]) -> None:
        """Receive until the connection breaks or does not answer any more."""
        client = redis_client.connect(settings.REDIS_URL, timeout_s=SILENCE_S)
        with contextlib.closing(client), contextlib.closing(_subscription(client)) as channel:
            channel.subscribe(CHANNEL)
            was_asked = False
            while not stopped():
                message = channel.get_message(timeout=SILENCE_S)
                if message is None:
                    if was_asked:
                        raise redis.TimeoutError("the broker does not answer")
                    channel.ping()
                    was_asked = True
                    continue
                was_asked = False
                if message["type"] == "subscribe":
                    self.add(set(), lost=True)  # what was sent before is lost
                elif message["type"] == "message":
                    self.add({int(word) for word in message["data"].split() if word.isdigit()})
