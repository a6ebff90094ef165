"""`/serve/<service>/…` → the service's own server, streamed both ways.

Who may call, and where the server listens, comes from the rows: service → its running job → the port leased to
it. A key made for exactly that attempt goes along; a server of anybody else does not know it, so a stale port
never reaches another tenant.
"""

from __future__ import annotations

import time
from dataclasses import replace

from django.db import close_old_connections
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.sign_in import lockout
from accounts.sign_in.asgi import bearer, find_user
from aiplatform.lib.errors import DomainError
from inference.kit.model_io.refusals import error
from inference.serving import endpoints, withdrawal
from inference.serving.keys import keys
from inference.serving.keys.callers import Admission, Caller, asks, holder, person
from inference.serving.limits import limits_of
from inference.serving.models import Service
from inference.serving.scaling import scaling, sleep
from inference.serving.traffic import routing
from workers.access.proxy.application import NotYet, PortProxy, Refused
from workers.access.proxy.forwarding import Scope, Upstream
from workers.core.states import JobState

PREFIX = "/serve/"
TIMEOUT_S = 30.0  # so long a call waits for a service that it woke
NOT_AGAIN_S, MAX_REFUSED_MODELS = 10, 10_000
OPEN = ("v2", "predict", "openapi.json", "metrics")  # first parts of paths that lead inside


def new() -> PortProxy:
    """Make the application that answers below `/serve/`."""
    return PortProxy(split=_split, find=_find, not_listening=_starting, broken_off=_broken_off, error=_error)


def _error(path: str, status: int, code: str, message: str) -> object:
    return error(path.removeprefix(PREFIX).partition("/")[2], status, code, message)


def _split(path: str) -> tuple[str, str]:
    """`/serve/<slug>/<path>` → (slug, path)."""
    slug, _slash, rest = path.removeprefix(PREFIX).partition("/")
    if rest.split("/")[0] not in OPEN or ".." in rest.split("/"):
        raise Refused(404, "not_found", _("Endpoints respond at v2/…, predict, openapi.json and metrics."))
    return slug, rest


def _find(scope: Scope, slug: str) -> Upstream:
    """Return who calls, which service, and where it runs.

    Raises:
        Refused: 401 unknown caller, 403 role, 404 not visible, 410 stopped or without model, 503 not up yet.
    """
    close_old_connections()
    service, caller = _find_caller(scope, slug)
    if service.asleep_at is None and _is_stopped(service):
        raise Refused(410, "service_stopped", _("This endpoint is stopped. Start it to use its address."))
    if why := withdrawal.why_not(service):
        raise Refused(410, "model_withdrawn", why)
    if service.asleep_at is not None or limits_of(service)["min_replicas"] == 0:
        service = _wake(service, _split(scope["path"])[1])
    own = routing.servers(service)
    if not own:
        raise Refused(503, "service_starting", _("This endpoint is not running yet."), **{"Retry-After": "2"})
    scaling.nudge(service)
    choose = routing.split(service, caller, own)
    return replace(own[0], admit=Admission(service.pk, caller), choose=choose)


def _is_stopped(service: Service) -> bool:
    """Return whether the service has no server, or is stopping; if the first one failed, others may still answer."""
    job = service.job
    if job is None or job.state == JobState.STOPPING:
        return True
    return job.is_final and not (job.state in (JobState.FAILED, JobState.LOST) and routing.others(service))


def _wake(service: Service, path: str) -> Service:
    """Start a service that is asleep; a prediction request waits for it, any other leaves it asleep.

    Raises:
        NotYet: it does not answer yet.
        Refused: it cannot be started now, or stays asleep.
    """
    if service.asleep_at is not None:
        if not asks(path):
            raise Refused(503, "service_asleep", _("This endpoint is scaled to zero. A prediction request starts it."))
        moment = time.monotonic()
        until, message = _cannot.get(service.pk, (0.0, ""))
        if moment < until:
            raise Refused(503, "cannot_wake", message, **{"Retry-After": str(NOT_AGAIN_S)})
        try:
            service = sleep.wake(service)
        except DomainError as refusal:  # planned anew at most once in so long: it takes the time of all others
            if len(_cannot) > MAX_REFUSED_MODELS:
                _cannot.clear()
            _cannot[service.pk] = (moment + NOT_AGAIN_S, refusal.message)
            raise Refused(503, "cannot_wake", refusal.message, **{"Retry-After": str(NOT_AGAIN_S)}) from None
    if not endpoints.refresh(service).answers and not routing.others(service):
        raise NotYet(_starting(), TIMEOUT_S)
    return service


_cannot: dict[int, tuple[float, str]] = {}  # services that could not be started, until when, and why


def _find_caller(scope: Scope, slug: str) -> tuple[Service, Caller]:
    """Return the service that is called, and who calls it: with a key of its own, or with an account.

    Raises:
        Refused: see `_find`.
    """
    secret = bearer(scope)
    if secret.startswith(keys.PREFIX):
        key = keys.find(slug, secret)
        if key is None or not (key.service.owner.is_active and key.service.owner.can(Action.SERVICES_CALL)):
            lockout.count_token_guess_at(scope)
            raise Refused(
                401, "unknown_key", _("This API key is unknown, expired or revoked."), **{"WWW-Authenticate": "Bearer"}
            )
        return key.service, holder(key.service, key)
    user = find_user(scope)
    if user is None:
        raise Refused(
            401, "not_signed_in", _("Send a token: Authorization: Bearer aip_…"), **{"WWW-Authenticate": "Bearer"}
        )
    if not user.can(Action.SERVICES_CALL):
        raise Refused(403, "not_allowed", _("Your role does not permit calling endpoints."))
    service = Service.objects.visible_to(user).filter(slug=slug).select_related("job", "owner").first()
    if service is None:
        raise Refused(404, "not_found", _("Service not found."))
    return service, person(service, user)


def _starting() -> Refused:
    return Refused(
        503, "service_starting", _("This endpoint is starting. Try again in a moment."), **{"Retry-After": "1"}
    )


def _broken_off() -> Refused:
    return Refused(502, "service_failed", _("The endpoint failed. See its log."))


application = new()
