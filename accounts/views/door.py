"""The way in: sign in, register, the first administrator, a new password by link."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.forms.own import FirstAdminForm, NewPasswordForm, RegisterForm, SignInForm
from accounts.models import OneTimeLink, User
from accounts.services import links, people
from aiplatform.lib.errors import NotFound
from aiplatform.lib.pages import refusals_shown_on

BACKEND = "django.contrib.auth.backends.ModelBackend"


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """Name and password. The session id changes with the person; `next` stays on this site."""

    template_name = "accounts/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    extra_context = {"registration_open": settings.REGISTRATION_OPEN}

    def form_invalid(self, form: SignInForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)


@login_not_required
@never_cache
@sensitive_post_parameters("password")
def register(request: HttpRequest) -> HttpResponse:
    """Ask for an account; the answer is the same whether the name is free or not."""
    if not settings.REGISTRATION_OPEN:
        raise NotFound(_("Registration is closed here. Ask an administrator for an account."))
    form = RegisterForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            people.register(**form.cleaned_data)
            messages.info(
                request,
                _("Your wish for an account was noted. Sign in; an administrator then gives you rights."),
            )
            return redirect("accounts:login")
    return render(request, "accounts/register.html", {"form": form}, status=422 if form.errors else 200)


def _enter(request: HttpRequest, user: User) -> HttpResponse:
    login(request, user, backend=BACKEND)
    return redirect("overview")


@login_not_required
@never_cache
@sensitive_post_parameters("password", "again")
def welcome(request: HttpRequest, secret: str) -> HttpResponse:
    """The console's link: whoever opens it first sets the first administrator's name and password."""
    links.find(secret, OneTimeLink.Purpose.FIRST_ADMIN)
    form = FirstAdminForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            user = links.redeem_first_admin(
                secret=secret, username=form.cleaned_data["username"], password=form.cleaned_data["password"]
            )
            return _enter(request, user)
    return render(request, "accounts/welcome.html", {"form": form}, status=422 if form.errors else 200)


@login_not_required
@never_cache
@sensitive_post_parameters("password", "again")
def set_password(request: HttpRequest, secret: str) -> HttpResponse:
    """An administrator's link: its owner sets a new password, once, within an hour."""
    link = links.find(secret, OneTimeLink.Purpose.PASSWORD)
    form = NewPasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusals_shown_on(form):
            user = links.redeem_password(secret=secret, password=form.cleaned_data["password"])
            return _enter(request, user)
    context = {"form": form, "person": link.user}
    return render(request, "accounts/set_password.html", context, status=422 if form.errors else 200)
