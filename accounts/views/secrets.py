"""Pages of a person's named secrets: what there is and where it is used, never a value."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.forms.secrets import SecretChangeForm, SecretForm
from accounts.http import SignedInRequest
from accounts.models import NamedSecret
from accounts.services import named_secrets
from aiplatform.lib.pages import errors_shown_on, needs


@never_cache
@needs(Action.SELF_MANAGE)
@sensitive_post_parameters("value")
def secrets_page(request: SignedInRequest) -> HttpResponse:
    """The person's secrets, and a form for a new one; `?name=` fills its name in."""
    form = SecretForm(request.POST or None, initial={"name": request.GET.get("name", "")[:64]})
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            row = named_secrets.add(user=request.user, **form.cleaned_data)
            messages.success(request, _("%(name)s stored.") % {"name": row.name})
            return redirect("accounts:secrets")
    uses = named_secrets.uses_of(request.user)
    rows = NamedSecret.objects.visible_to(request.user)
    shown = [{"row": row, "uses": uses.pop(row.name, [])} for row in rows]
    context = {"form": form, "secrets": shown, "missing": sorted(uses.items())}
    return render(request, "accounts/secrets.html", context, status=422 if form.errors else 200)


@never_cache
@needs(Action.SELF_MANAGE)
@sensitive_post_parameters("value")
def secret_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """Replace the value of a secret, or its note."""
    row: NamedSecret = get_object_or_404(NamedSecret.objects.visible_to(request.user), pk=pk)
    form = SecretChangeForm(request.POST or None, initial={"note": row.note})
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            fields = form.cleaned_data
            named_secrets.change(row, by=request.user, value=fields["value"] or None, note=fields["note"])
            messages.success(request, _("%(name)s changed.") % {"name": row.name})
            return redirect("accounts:secrets")
    context = {"form": form, "secret": row, "uses": named_secrets.uses_of(request.user).get(row.name, [])}
    return render(request, "accounts/secret.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SELF_MANAGE)
def secret_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget one of the person's secrets."""
    row: NamedSecret = get_object_or_404(NamedSecret.objects.visible_to(request.user), pk=pk)
    named_secrets.delete(row, by=request.user)
    messages.success(request, _("%(name)s deleted.") % {"name": row.name})
    return redirect("accounts:secrets")
