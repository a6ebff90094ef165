"""What a service allows its callers: the limits, their bounds, and what its server calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from inference.serving.models import Service


@dataclass(frozen=True)
class Limit:
    """What a service allows its callers: the usual number and the bounds of others; `env`: what its server calls it."""

    usual: int
    least: int
    most: int
    env: str = ""


LIMITS: Mapping[str, Limit] = {
    "per_minute": Limit(0, 0, 1_000_000),  # requests of one caller in any minute; 0: as often as they like
    "max_body_mib": Limit(64, 1, 1024, "AIP_SERVE_MAX_BODY_MIB"),
    "request_batch": Limit(64, 1, 1024, "AIP_SERVE_REQUEST_BATCH"),  # pictures or samples in one request
    "max_answer_mib": Limit(256, 1, 1024, "AIP_SERVE_MAX_ANSWER_MIB"),
    "keep_percent": Limit(0, 0, 100, "AIP_SERVE_KEEP_PERCENT"),  # of the pictures, for annotation, by chance
    "keep_below": Limit(0, 0, 100, "AIP_SERVE_KEEP_BELOW"),  # pictures with an answer of a lower score, in percent
    "keep_differing": Limit(0, 0, 100),  # pictures of which the answers of two models agree less, in percent
    "keep_days": Limit(30, 1, 90),  # how long pictures that a rule kept wait
    "min_replicas": Limit(1, 0, 32),  # servers; 0: none while nobody asks
    "max_replicas": Limit(1, 1, 32),
    "queue_ms": Limit(100, 10, 10_000),  # one more server where 1 of 20 requests waits longer
    "idle_minutes": Limit(15, 1, 10_080),  # without a request, until it has no server
    "deadline_s": Limit(30, 1, 140, "AIP_SERVE_DEADLINE_S"),  # below what the platform itself waits, 150 s
}


def limits_of(service: Service) -> dict[str, int]:
    """What a service allows its callers, by the names of `LIMITS`."""
    return {name: service.options.get(name, limit.usual) for name, limit in LIMITS.items()}


def environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """What a server is told of its limits."""
    return {limit.env: str(spec[name]) for name, limit in LIMITS.items() if limit.env and name in spec}


def check(limits: Mapping[str, int], others: Mapping[str, int]) -> None:
    """Refuse numbers out of bounds, all at once.

    Args:
        others: limits that stay as they are.

    Raises:
        Invalid: a limit is wrong.
    """
    found = Refusals()
    for name, value in limits.items():
        least, most = LIMITS[name].least, LIMITS[name].most
        with found:
            if not least <= value <= most:
                said = _("This must be a whole number from %(least)d to %(most)d.") % {"least": least, "most": most}
                raise Invalid(said, field=name)
    with found:
        both = {**others, **limits}
        if both["min_replicas"] > both["max_replicas"]:
            raise Invalid(_("There cannot be more servers always than at most."), field="max_replicas")
    found.end()
