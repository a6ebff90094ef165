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
from accounts.forms.own import ChangePasswordForm, SettingsForm, TokenForm
from accounts.http import SignedInRequest
from accounts.models import ApiToken
from accounts.services import passwords, root_inside, sessions, tokens
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
    """A new password; every other session and every API token ends with the old one."""
    form = ChangePasswordForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            before = request.session.session_key
            passwords.change(user=request.user, password=form.cleaned_data["password"], by=request.user)
            update_session_auth_hash(request, request.user)  # this session goes on, under a new id
            sessions.moved(old=before, new=request.session.session_key)
            messages.success(request, _("Password changed. Other sessions and API tokens have ended."))
            return redirect("overview")
    return render(request, "accounts/password.html", {"form": form}, status=422 if form.errors else 200)


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
