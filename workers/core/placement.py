"""Which machines a waiting job can run on, as upper rooms know it: its image may need a container, or forbid one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiplatform.lib.registry import Registry, dotted_name

Tiers = tuple[int, int]
"""The least and the most isolation tier of a machine."""
SOURCES: Registry[Callable[[], Mapping[int, Tiers]]] = Registry("source of tiers", name=dotted_name)
"""Each says it of queued jobs by number, in one query; added in AppConfig.ready()."""


def tiers_of_waiting() -> dict[int, Tiers]:
    """Bounds of queued jobs by number; jobs that run anywhere are left out."""
    tiers: dict[int, Tiers] = {}
    for source in SOURCES:
        for job, (lower, upper) in source().items():
            bounds = tiers.get(job, (0, upper))
            tiers[job] = (max(bounds[0], lower), min(bounds[1], upper))
    return tiers
