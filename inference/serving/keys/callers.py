"""Callers of a service: a user, or the holder of a key; and their admission."""

from __future__ import annotations

from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from inference.serving.keys import rate_limits
from inference.serving.keys.models import ServiceKey
from inference.serving.models import Service
from workers.access.proxy.application import Refused
from workers.access.proxy.forwarding import Scope


@dataclass(frozen=True)
class Caller:
    """One of both: ids of rows, 0 for none. `per_minute` 0: as often as they like."""

    user: int = 0
    key: int = 0
    per_minute: int = 0

    @property
    def name(self) -> str:
        """Identifies a caller."""
        return f"key:{self.key}" if self.key else str(self.user)


def person(service: Service, user: User) -> Caller:
    """Return the caller for a user account."""
    return Caller(user=user.pk, per_minute=service.options.get("per_minute", 0))


def holder(service: Service, key: ServiceKey) -> Caller:
    """Return the caller for a key."""
    return Caller(key=key.pk, per_minute=key.per_minute or service.options.get("per_minute", 0))


@dataclass(frozen=True)
class Admission:
    """Admits or refuses each request of a caller before it is forwarded."""

    service: int
    caller: Caller

    async def __call__(self, scope: Scope, path: str) -> None:
        """Let the request through, or not.

        Raises:
            Refused: 403 a key where no answers are, 429 too often.
        """
        if self.caller.key and path.split("/", maxsplit=1)[0] == "metrics":
            raise Refused(
                403,
                "not_allowed",
                _("API keys permit v2/… and predict. The load of an endpoint is visible to its owner only."),
            )
        if not self.caller.per_minute or not asks(path):
            return
        name = f"{self.service}:{self.caller.name}"
        wait = await sync_to_async(rate_limits.wait_s, thread_sensitive=False)(name, self.caller.per_minute)
        if wait:
            raise Refused(429, "too_often", _too_often(self.caller.per_minute, wait), **{"Retry-After": str(wait)})


def _rate_limit_message(limit: int, wait: int) -> str:
    message = gettext("Limit of %(most)d requests per minute exceeded. Try again in %(wait)d s.")
    return message % {"most": limit, "wait": wait}


_too_often = lazy(_rate_limit_message, str)  # in the language of the reader


def asks(path: str) -> bool:
    """Whether this part of the address makes the model answer."""
    return path == "predict" or path.endswith("/infer")
