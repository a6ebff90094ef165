"""Sign-in by OpenID Connect: the redirect to the provider, and the return from it."""

from __future__ import annotations

from time import time

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.services import oidc
from accounts.services.identities import NotLetIn
from accounts.views.sign_in import let_in
from aiplatform import env
from aiplatform.lib.errors import NotFound

SESSION_KEY = "sign_on"  # in the session of a browser on its way: what it must bring back, once
WITHIN_S = 600.0


def _back(request: HttpRequest) -> str:
    base = env.BASE_URL.rstrip("/") or request.build_absolute_uri("/").rstrip("/")
    return base + reverse("accounts:sign-on-back")


def _require_on() -> None:
    if not oidc.is_on():
        raise NotFound(_("External sign-in is not configured on this platform."))


def _to_the_door(request: HttpRequest, sentence: str) -> HttpResponse:
    messages.error(request, sentence)
    return redirect("accounts:login")


@login_not_required
@never_cache
@require_GET
def sign_on(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    _require_on()
    if request.user.is_authenticated:
        return redirect("overview")
    then = request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(then, {request.get_host()}, require_https=request.is_secure()):
        then = resolve_url("overview")
    try:
        address, session_values = oidc.start_sign_in(back=_back(request))
    except oidc.ProviderAway as exc:
        return _to_the_door(request, exc.message)
    request.session[SESSION_KEY] = {**session_values, "at": time(), "then": then}
    return HttpResponseRedirect(address)


@login_not_required
@never_cache
@require_GET
def sign_on_back(request: HttpRequest) -> HttpResponse:
    """The browser comes back; what its session kept counts once."""
    _require_on()
    session_values = request.session.pop(SESSION_KEY, {})
    if not 0 <= time() - session_values.get("at", 0.0) < WITHIN_S:
        session_values = {}
    try:
        user = oidc.finish(session_values=session_values, answered=request.GET.dict(), back=_back(request))
    except (oidc.NotProved, oidc.ProviderAway, NotLetIn) as exc:
        return _to_the_door(request, exc.message)
    return let_in(request, user, then=session_values["then"], provider="openid")
