"""Sources of the page header that apps register: the current cluster and the banner of problems."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiplatform.lib.registry import Slot


@dataclass(frozen=True, slots=True)
class ClusterName:
    """What the top bar shows of a cluster."""

    pk: int
    name: str


@dataclass(frozen=True)
class ClusterGlance:
    """The reader's current cluster and how much of it is free, for the top bar."""

    current: ClusterName | None = None  # None: the reader is in no cluster
    all: list[ClusterName] = field(default_factory=list)  # clusters to switch to
    free_words: str = ""  # "2 / 4": free and all cards
    sentence: Any = ""  # the same in words, with what is counted
    lacks_machines: bool = False  # none has joined yet
    ask: list[Any] = field(default_factory=list)  # who lets people in, for a reader who is in no cluster but could work


ClusterSource = Callable[[Any], ClusterGlance]
#: `source(user)` says what the top bar shows.
CLUSTER_SOURCE: Slot[ClusterSource] = Slot("source of the top bar's cluster")

register_cluster_source = CLUSTER_SOURCE.register


def cluster_glance(user: Any) -> ClusterGlance:
    """Return the glance of this person; empty where nothing is registered."""
    source = CLUSTER_SOURCE.get()
    return source(user) if source else ClusterGlance()


TroubleSource = Callable[[], list[Any]]
#: `source()` says what is wrong with the platform, as sentences for everybody.
TROUBLE_SOURCE: Slot[TroubleSource] = Slot("source of the banner")
register_trouble_source = TROUBLE_SOURCE.register
LOOK_EVERY_S = 10.0
_looked: tuple[float, list[Any]] = (float("-inf"), [])


def troubles() -> list[Any]:
    """Return what is wrong with the platform; each process reads it every ten seconds at most."""
    global _looked  # noqa: PLW0603 - one memory per process is the point
    if time.monotonic() - _looked[0] >= LOOK_EVERY_S:
        source = TROUBLE_SOURCE.get()
        _looked = time.monotonic(), source() if source else []
    return _looked[1]


def forget_troubles() -> None:
    """Look again at the next page."""
    global _looked  # noqa: PLW0603 - see above
    _looked = float("-inf"), []
