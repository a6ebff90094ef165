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
    """A limit that a service sets for its callers: the default and the bounds; `env`: its name in the server."""

    default: int
    minimum: int
    maximum: int
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
    "min_replicas": Limit(1, 0, 32),  # servers; 0: none without requests
    "max_replicas": Limit(1, 1, 32),
    "queue_ms": Limit(100, 10, 10_000),  # one more server where 1 of 20 requests waits longer
    "idle_minutes": Limit(15, 1, 10_080),  # without a request, until it has no server
    "deadline_s": Limit(30, 1, 140, "AIP_SERVE_DEADLINE_S"),  # below what the platform itself waits, 150 s
}


def limits_of(service: Service) -> dict[str, int]:
    """What a service allows its callers, by the names of `LIMITS`."""
    return {name: service.options.get(name, limit.default) for name, limit in LIMITS.items()}


def environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables with the limits of a server."""
    return {limit.env: str(spec[name]) for name, limit in LIMITS.items() if limit.env and name in spec}


def check(limits: Mapping[str, int], others: Mapping[str, int]) -> None:
    """Check that limits are within their bounds; all errors are raised at once.

    Args:
        others: limits that stay as they are.

    Raises:
        Invalid: a limit is wrong.
    """
    refusals = Refusals()
    for name, value in limits.items():
        minimum, maximum = LIMITS[name].minimum, LIMITS[name].maximum
        with refusals:
            if not minimum <= value <= maximum:
                message = _("Must be an integer from %(least)d to %(most)d.") % {
                    "least": minimum,
                    "most": maximum,
                }
                raise Invalid(message, field=name)
    with refusals:
        combined = {**others, **limits}
        if combined["min_replicas"] > combined["max_replicas"]:
            raise Invalid(_("The minimum replicas exceed the maximum."), field="max_replicas")
    refusals.end()
