"""The door: one route for all of MLflow's calls, answered in MLflow's form by who shows a token."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from accounts.access.permissions import Action
from aiplatform.lib import denials, disk
from aiplatform.lib.errors import DomainError, NotAllowed
from training.experiments.tracking import body, callers, calls, refusals
from training.experiments.tracking.calls import experiments, files, logged_models, registry, runs, server  # noqa: F401 - their tables

log = logging.getLogger(__name__)


@csrf_exempt  # a cookie opens nothing here
@login_not_required  # MLflow's clients are told in their own form that they need a token
def answer(request: HttpRequest, call: str) -> HttpResponseBase:
    """Answer one call."""
    try:
        return _answered(request, call)
    except DomainError as refusal:
        return _refused(request, refusal)
    except OSError as exc:
        if not disk.is_full(exc):
            raise
        return _refused(request, disk.DiskFull())


answer.needs = Action.TRAINING_VIEW  # type: ignore[attr-defined]  # what a person needs at least; read by tests


def _answered(request: HttpRequest, call: str) -> HttpResponseBase:
    match = calls.find(str(request.method), call)
    if match is None:
        caller = callers.authenticate(request, reads=True)
        log.info("user=%s an unknown call of MLflow's API: %s %s", caller.user.pk, request.method, call[:200])
        raise refusals.Unknown(_("The platform does not support the call %(call)s.") % {"call": call[:200]})
    handled, steps = match
    caller = callers.authenticate(request, reads=handled.reads)
    fields = body.Body({}) if handled.raw else body.read(request)
    try:
        result = handled.handler(calls.CallContext(caller, request, fields, steps))
    except (refusals.NoSuchId, NotAllowed):
        request.user = caller.user  # for the trail; names that a script asks for before it makes them are not of it
        raise
    return result if isinstance(result, HttpResponseBase) else _json(result, 200)


def _json(data: dict[str, Any], status: int) -> JsonResponse:
    response = JsonResponse(data, status=status)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _refused(request: HttpRequest, refusal: DomainError) -> JsonResponse:
    if refusal.status == 403:
        denials.report(request, refusal.code)
    answered = _json({"error_code": refusals.code_of(refusal), "message": refusal.sentences}, refusal.status)
    if refusal.status == 501:  # no fault of the platform: it is noted above by its name
        answered._has_been_logged = True  # type: ignore[attr-defined]  # Django's own mark, without a public name
    if refusal.status == 401:
        answered["WWW-Authenticate"] = "Bearer"
    return answered
