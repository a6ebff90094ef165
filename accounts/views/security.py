"""Pages about a person's own access: sessions, SSH keys, the second factor."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.forms.own import CodeForm, PasswordForm, SshKeyForm
from accounts.http import SignedInRequest
from accounts.models import SshKey, UserSession
from accounts.services import second_factor, sessions, ssh_keys
from aiplatform.lib.pages import errors_shown_on, needs


@needs(Action.SELF_MANAGE)
def sessions_page(request: SignedInRequest) -> HttpResponse:
    """Where the person is signed in."""
    context = {"rows": sessions.list_live(request.user), "here": request.session.session_key}
    return render(request, "accounts/sessions.html", context)


@require_POST
@needs(Action.SELF_MANAGE)
def session_end(request: SignedInRequest, pk: int) -> HttpResponse:
    """Sign one browser out."""
    sessions.end(get_object_or_404(UserSession.objects.visible_to(request.user), pk=pk), by=request.user)
    messages.success(request, _("Session ended."))
    return redirect("accounts:sessions")


@require_POST
@needs(Action.SELF_MANAGE)
def sessions_end_others(request: SignedInRequest) -> HttpResponse:
    """Sign out everywhere but here."""
    count = sessions.end_others(request.user, but=request.session.session_key, by=request.user)
    message = ngettext("%(count)s other session ended.", "%(count)s other sessions ended.", count)
    messages.success(request, message % {"count": count})
    return redirect("accounts:sessions")


@needs(Action.SELF_MANAGE)
def keys_page(request: SignedInRequest) -> HttpResponse:
    """The person's SSH keys."""
    form = SshKeyForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            ssh_keys.add(user=request.user, **form.cleaned_data)
            messages.success(request, _("Key added."))
            return redirect("accounts:ssh-keys")
    context = {"form": form, "keys": SshKey.objects.visible_to(request.user)}
    return render(request, "accounts/ssh_keys.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SELF_MANAGE)
def key_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget one of the person's keys."""
    ssh_keys.remove(key=get_object_or_404(SshKey.objects.visible_to(request.user), pk=pk), by=request.user)
    messages.success(request, _("Key removed."))
    return redirect("accounts:ssh-keys")


@never_cache
@needs(Action.SELF_MANAGE)
@sensitive_post_parameters()
def second_factor_page(request: SignedInRequest) -> HttpResponse:
    """Switch the second factor on: scan, type a first code, keep the recovery codes."""
    if second_factor.is_on(request.user):
        form = (
            PasswordForm(request.POST or None, user=request.user)
            if request.user.has_usable_password()
            else CodeForm(request.POST or None)  # without a password: an identity provider
        )
        if request.method == "POST" and form.is_valid():
            with errors_shown_on(form):
                if "code" in form.fields:
                    second_factor.check(request.user, form.cleaned_data["code"])
                second_factor.switch_off(request.user, by=request.user)
                messages.success(request, _("The second factor is disabled."))
                return redirect("accounts:second-factor")
        left = request.user.recovery_codes.filter(used_at=None).count()
        context: dict[str, object] = {"on": True, "form": form, "left": left}
        return render(request, "accounts/second_factor.html", context, status=422 if form.errors else 200)
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            codes = second_factor.confirm(request.user, form.cleaned_data["code"])
            return render(request, "accounts/recovery_codes.html", {"codes": codes, "text": "\n".join(codes)})
    secret, qr_code = second_factor.start_setup(request.user)
    context = {"on": False, "form": form, "secret": secret, "qr_code": qr_code}
    return render(request, "accounts/second_factor.html", context, status=422 if form.errors else 200)
