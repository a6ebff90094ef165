"""What lower rooms show in the frame: filled by `register_cluster_source`, read by the context processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClusterGlance:
    """The reader's current cluster and how much of it is free, for the top bar."""

    current: Any = None  # object with pk and name; None: the reader is in no cluster
    all: list[Any] = field(default_factory=list)  # clusters to switch to
    free_words: str = ""  # "2 / 4": free and all cards
    sentence: Any = ""  # the same in words
    ask: list[Any] = field(default_factory=list)  # who lets people in, for a reader who is in no cluster but could work


ClusterSource = Callable[[Any], ClusterGlance]
_sources: list[ClusterSource] = []


def register_cluster_source(source: ClusterSource) -> None:
    """Let `source(user)` say what the top bar shows; the last one registered speaks."""
    _sources.append(source)


def cluster_glance(user: Any) -> ClusterGlance:
    """The glance of this person; empty where nobody registered."""
    return _sources[-1](user) if _sources else ClusterGlance()
