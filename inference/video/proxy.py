"""`/watch/<analysis>/live.mjpeg` → the job that watches a stream: its newest pictures, as they come."""

from __future__ import annotations

from django.db import close_old_connections
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.sign_in.asgi import find_user
from aiplatform.lib import ids
from inference.serving import endpoints as serving
from inference.video.models import VideoAnalysis
from workers.access.proxy import endpoints
from workers.access.proxy.application import PortProxy, Refused
from workers.access.proxy.forwarding import Scope, Upstream
from workers.core.states import JobState

PREFIX = "/watch/"
LIVE = "live.mjpeg"


def new() -> PortProxy:
    """Make the application that answers below `/watch/`."""
    return PortProxy(split=_split, find=_find, not_listening=_starting, broken_off=_broken_off)


def _split(path: str) -> tuple[str, str]:
    """`/watch/<analysis>/live.mjpeg` → (analysis, path)."""
    called, _slash, rest = path.removeprefix(PREFIX).partition("/")
    if rest != LIVE:
        raise Refused(404, "not_found", _("Live frames are at /watch/…/live.mjpeg."))
    return called, rest


def _find(scope: Scope, called: str) -> Upstream:
    """Return who looks, at which analysis, and where it runs.

    Raises:
        Refused: 401 not signed in, 403 role, 404 not visible or missing, 405 not GET, 410 over, 503 not up yet.
    """
    close_old_connections()
    user = find_user(scope)
    if user is None:
        raise Refused(
            401, "not_signed_in", _("Send a token: Authorization: Bearer aip_…"), **{"WWW-Authenticate": "Bearer"}
        )
    if not user.can(Action.EVALUATIONS_VIEW):
        raise Refused(403, "not_allowed", _("Your role does not permit viewing videos."))
    rows = VideoAnalysis.objects.visible_to(user).filter(pk=ids.number(called) or 0, is_stream=True)
    analysis = rows.select_related("job").first()
    if analysis is None:
        raise Refused(404, "not_found", _("Stream not found."))
    if scope["method"] != "GET":
        raise Refused(405, "method_not_allowed", _("Live frames can only be viewed."), Allow="GET")
    job = analysis.job
    if job.is_final or job.state == JobState.STOPPING:
        raise Refused(410, "stream_over", _("This stream is not analyzed any more."))
    address = endpoints.endpoint(job) if job.state == JobState.RUNNING else None
    if address is None:
        raise _starting()
    return Upstream(*address, headers=((serving.KEY_HEADER, serving.key_for(job.pk, job.attempt_number)),))


def _starting() -> Refused:
    return Refused(503, "stream_starting", _("This stream is not analyzed yet."), **{"Retry-After": "2"})


def _broken_off() -> Refused:
    return Refused(502, "stream_failed", _("The analysis failed. See its log."))


application = new()
