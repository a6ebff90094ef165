"""The console of the user management: counts, who waits, the last acts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.forms.own import RegistrationPolicyForm
from accounts.http import SignedInRequest
from accounts.models import AuditEntry, Role, User, UserGroup
from accounts.presentation import audit_sentences
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
    """Counts of people, groups and roles, each with its way to a new one."""
    people = User.objects.visible_to(request.user)
    last: list[Any] = list(AuditEntry.objects.visible_to(request.user).exclude(verb="denied")[:10])
    audit_sentences.add_display(last, reader=request.user)
    roles = Role.objects.visible_to(request.user)
    context = {
        "people": people.count(),
        "active": people.filter(is_active=True).count(),
        "awaiting": people.filter(awaiting=True).count(),
        "waiting": people.without_rights().count(),
        "groups": UserGroup.objects.visible_to(request.user).count(),
        "roles": roles.count(),
        "custom": roles.filter(preset=False).count(),
        "last": last,
    }
    return render(request, "accounts/console.html", context)
