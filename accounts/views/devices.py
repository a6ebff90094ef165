"""The page on which a user allows or denies the sign-in of a program."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.services import device_sign_in
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_as_messages, needs


@never_cache
@needs(Action.SELF_MANAGE)
def device_page(request: SignedInRequest) -> HttpResponse:
    """Ask for the code of a program, or whether the program of `?code=` may sign in; POST with `answer` answers."""
    code = (request.POST.get("code") or request.GET.get("code") or "").strip()
    sign_in, error = None, ""
    if code:
        try:
            sign_in = device_sign_in.find(code, user=request.user)
            error = "" if sign_in else _("No program waits with this code. Codes are valid for ten minutes and once.")
        except DomainError as exc:
            error = exc.message
    if sign_in and request.method == "POST" and request.POST.get("answer") in ("allow", "deny"):
        allows = request.POST["answer"] == "allow"
        with errors_as_messages(request):
            device_sign_in.answer(sign_in, user=request.user, allows=allows)
            if allows:
                messages.success(request, _("%(name)s is signed in. You can close this page.") % {"name": sign_in.name})
            else:
                messages.info(request, _("%(name)s was not signed in.") % {"name": sign_in.name})
        return redirect("accounts:tokens")
    context = {"sign_in": sign_in, "code": code, "error": error}
    return render(request, "accounts/device.html", context, status=422 if error else 200)
