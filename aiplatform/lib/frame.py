"""Data of the frame that apps below provide: `register_cluster_source`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiplatform.lib.registry import Slot


@dataclass(frozen=True)
class ClusterGlance:
    """The reader's current cluster and how much of it is free, for the top bar."""

    current: Any = None  # object with pk and name; None: the reader is in no cluster
    all: list[Any] = field(default_factory=list)  # clusters to switch to
    free_words: str = ""  # "2 / 4": free and all cards
    sentence: Any = ""  # the same in words
    ask: list[Any] = field(default_factory=list)  # who lets people in, for a reader who is in no cluster but could work


ClusterSource = Callable[[Any], ClusterGlance]
#: `source(user)` says what the top bar shows.
CLUSTER_SOURCE: Slot[ClusterSource] = Slot("source of the top bar's cluster")

register_cluster_source = CLUSTER_SOURCE.register


def cluster_glance(user: Any) -> ClusterGlance:
    """Return the glance of this person; empty where nothing is registered."""
    source = CLUSTER_SOURCE.get()
    return source(user) if source else ClusterGlance()
