"""Pages of signing in: password, second factor, registration, first administrator, new password by link."""

from __future__ import annotations

from time import time
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.forms.own import CodeForm, FirstAdminForm, NewPasswordForm, RegisterForm, SignInForm
from accounts.models import OneTimeLink, User
from accounts.services import links, oidc, people, registration, second_factor
from accounts.sign_in import lockout, proof
from aiplatform.lib import rates
from aiplatform.lib.errors import NotFound
from aiplatform.lib.pages import errors_shown_on

DIRECTORY = "accounts.sign_in.backends.DirectoryBackend"
BACKEND = "django.contrib.auth.backends.ModelBackend"


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """Name and password. The session id changes with the person; `next` stays on this site."""

    template_name = "accounts/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        more = {
            "registration_open": registration.mode() != registration.Registration.CLOSED,
            "sign_on": oidc.is_on(),
            "sign_on_name": settings.OIDC_NAME,
        }
        return super().get_context_data(**kwargs) | more

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        provider = "ldap" if getattr(user, "backend", "") == DIRECTORY else ""
        return let_in(self.request, user, then=self.get_success_url(), provider=provider)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)


@login_not_required
@never_cache
@sensitive_post_parameters("password")
def register(request: HttpRequest) -> HttpResponse:
    """Ask for an account; the answer is the same whether the name is free or not."""
    mode = registration.mode()
    if mode == registration.Registration.CLOSED:
        raise NotFound(_("Registration is closed. Ask an administrator for an account."))
    form = RegisterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        rates.limit(f"register:{request.META.get('REMOTE_ADDR')}", max_count=REGISTRATIONS_PER_HOUR, within_s=3600)
        with errors_shown_on(form):
            awaiting = mode == registration.Registration.APPROVAL
            people.register(**form.cleaned_data, awaiting=awaiting)
            message = (
                _("Your registration was received. You can sign in after an administrator has approved it.")
                if awaiting
                else _("Your registration was received. Sign in; an administrator then grants permissions.")
            )
            messages.info(request, message)
            return redirect("accounts:login")
    return render(request, "accounts/register.html", {"form": form}, status=422 if form.errors else 200)


REGISTRATIONS_PER_HOUR = 20  # from one address: a class behind one router, not a flood
PENDING = "awaits_code"  # in an anonymous session: whose password was right, and when
CODE_WITHIN_S = 300.0


def let_in(request: HttpRequest, user: User, *, then: str, provider: str = "") -> HttpResponse:
    """Sign in `user`, who was authenticated, past the second factor where one is on.

    Args:
        then: path of the page that follows.
        provider: the identity provider that proved it, for the trail; empty: a password of this platform's.
    """
    if second_factor.is_on(user):
        request.session.cycle_key()
        pending = {"user": user.pk, "hash": user.get_session_auth_hash(), "at": time(), "then": then, "way": provider}
        request.session[PENDING] = pending
        return redirect("accounts:code")
    request.way_in = provider  # type: ignore[attr-defined]  # travels with the request
    login(request, user, backend=BACKEND)
    if not provider:
        proof.record(request, user)
    return redirect(then)


def _pending(request: HttpRequest) -> User | None:
    """Return the person whose code is waited for."""
    pending = request.session.get(PENDING) or {}
    if not 0 <= time() - pending.get("at", 0.0) < CODE_WITHIN_S:
        return None
    user = links.find_active_user(pending["user"])
    return user if user and constant_time_compare(pending["hash"], user.get_session_auth_hash()) else None


@login_not_required
@never_cache
@sensitive_post_parameters("code")
def code(request: HttpRequest) -> HttpResponse:
    """The second factor: a code from the phone, or a recovery code."""
    user = _pending(request)
    if user is None:
        return redirect("accounts:login")
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if lockout.is_paused(request, user.username):
            return lockout.answer(request, None, None)
        with errors_shown_on(form):
            try:
                second_factor.check(user, form.cleaned_data["code"])
            except second_factor.WrongCode:
                lockout.count_failure(request, user.username)
                raise
            pending = request.session.pop(PENDING)
            request.way_in = pending["way"]  # type: ignore[attr-defined]  # travels with the request
            login(request, user, backend=BACKEND)
            if not pending["way"]:
                proof.record(request, user, at=pending["at"])
            return redirect(str(pending["then"]))
    return render(request, "accounts/code.html", {"form": form}, status=422 if form.errors else 200)


@login_not_required
@never_cache
@sensitive_post_parameters("password", "again")
def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """The console's link: its first visitor sets the first administrator's name and password."""
    links.find(secret, OneTimeLink.Purpose.FIRST_ADMIN)
    form = FirstAdminForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            user = links.redeem_first_admin(
                secret=secret, username=form.cleaned_data["username"], password=form.cleaned_data["password"]
            )
            return let_in(request, user, then=reverse("overview"))
    return render(request, "accounts/welcome.html", {"form": form}, status=422 if form.errors else 200)


@login_not_required
@never_cache
@sensitive_post_parameters("password", "again")
def set_password(request: HttpRequest, secret: str) -> HttpResponse:
    """An administrator's link: its owner sets a new password, once, within an hour."""
    link = links.find(secret, OneTimeLink.Purpose.PASSWORD)
    form = NewPasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            user = links.redeem_password(secret=secret, password=form.cleaned_data["password"])
            return let_in(request, user, then=reverse("overview"))
    context = {"form": form, "person": link.user}
    return render(request, "accounts/set_password.html", context, status=422 if form.errors else 200)
