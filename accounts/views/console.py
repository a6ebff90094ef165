"""Who may register."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.forms.own import RegistrationPolicyForm
from accounts.http import SignedInRequest
from accounts.services import registration
from aiplatform.lib.pages import needs


@needs(Action.PEOPLE_MANAGE)
def registration_policy(request: SignedInRequest) -> HttpResponse:
    """Who may register."""
    form = RegistrationPolicyForm(request.POST or None, initial={"registration": registration.mode()})
    if request.method == "POST" and form.is_valid():
        registration.set_mode(form.cleaned_data["registration"], by=request.user)
        messages.success(request, _("Saved."))
        return redirect("accounts:registration-policy")
    context = {"form": form, "closed": not settings.REGISTRATION_OPEN}
    return render(request, "accounts/registration_policy.html", context, status=422 if form.errors else 200)


@needs(Action.PEOPLE_MANAGE)
def console(request: SignedInRequest) -> HttpResponse:
    """Redirect to the users: the URL of a page that no longer exists."""
    return redirect("accounts:people")
