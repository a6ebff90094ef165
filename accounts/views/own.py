"""Pages of a person's own account: settings, password, API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import override
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.forms.own import (
    ChangePasswordForm,
    FirstPasswordForm,
    LaterFirstPasswordForm,
    OwnForm,
    SettingsForm,
    TokenForm,
)
from accounts.http import SignedInRequest
from accounts.models import ApiToken
from accounts.services import passwords, root_inside, sessions, tokens
from accounts.sign_in import proof
from aiplatform.lib.pages import errors_shown_on, needs


@needs(Action.SELF_MANAGE)
def settings_page(request: SignedInRequest) -> HttpResponse:
    """Name, language, time zone, theme, refresh interval."""
    form = SettingsForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            form.save()
            if "root_inside" in form.fields:
                root_inside.switch(request.user, on=form.cleaned_data["root_inside"])
        with override(form.cleaned_data["language"] or request.LANGUAGE_CODE):
            messages.success(request, _("Settings saved."))
        return redirect("accounts:settings")
    return render(request, "accounts/settings.html", {"form": form}, status=422 if form.errors else 200)


@never_cache
@sensitive_post_parameters("current", "password", "again")
def password_page(request: SignedInRequest) -> HttpResponse:
    """A new password; every other session and every API token ends with the old one.

    A temporary password is not asked for again in the session that has just signed in with it.
    """
    user, template = request.user, "accounts/password.html"
    form_class: type[OwnForm] = ChangePasswordForm
    if user.must_change_password:
        form_class = FirstPasswordForm if proof.is_recent(request, user) else LaterFirstPasswordForm
        template = "accounts/first_password.html"
    form = form_class(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            before = request.session.session_key
            passwords.change(user=user, password=form.cleaned_data["password"], by=user)
            update_session_auth_hash(request, user)  # this session goes on, under a new id
            sessions.moved(old=before, new=request.session.session_key)
            proof.clear(request)
            if template == "accounts/password.html":
                messages.success(request, _("Password changed. Other sessions and API tokens have ended."))
            return redirect("overview")
    return render(request, template, {"form": form}, status=422 if form.errors else 200)


@never_cache
@needs(Action.SELF_MANAGE)
def tokens_page(request: SignedInRequest) -> HttpResponse:
    """The person's API tokens; a new one is shown once."""
    form, secret, made = TokenForm(request.POST or None), "", None
    if request.method == "POST" and form.is_valid():
        made, secret = tokens.issue(
            user=request.user,
            name=form.cleaned_data["name"],
            scope=form.cleaned_data["scope"],
            expires_in=form.expires_in,
        )
        form = TokenForm()
    context = {
        "form": form,
        "secret": secret,
        "made": made,
        "tokens": ApiToken.objects.visible_to(request.user),
        "address": request.build_absolute_uri("/"),
    }
    return render(request, "accounts/tokens.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SELF_MANAGE)
def token_revoke(request: SignedInRequest, pk: int) -> HttpResponse:
    """End one of the person's own tokens."""
    tokens.revoke(token=get_object_or_404(ApiToken.objects.visible_to(request.user), pk=pk), by=request.user)
    messages.success(request, _("Token revoked. Requests with it are rejected."))
    return redirect("accounts:tokens")
