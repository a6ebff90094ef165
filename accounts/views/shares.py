"""With whom a thing is shared: one page for datasets, models and annotation projects."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.access import sharing
from accounts.access.permissions import Action
from accounts.forms.shares import ShareForm
from accounts.http import SignedInRequest
from accounts.models import User
from accounts.services import shares
from aiplatform.lib.pages import errors_shown_on, needs


@needs(Action.SELF_MANAGE)  # and what the kind of thing asks for, see shares.find
def share_page(request: SignedInRequest, kind: str, pk: int) -> HttpResponse:
    """Show who has which level, and a form to give one."""
    shareable, thing = shares.find(kind, pk, by=request.user)
    form = ShareForm(request.POST or None, kind=shareable, groups=shares.groups_of(request.user))
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form), transaction.atomic():  # all or none
            fields = form.cleaned_data
            act: dict[str, Any] = {"kind": kind, "pk": pk, "by": request.user, "level": fields["level"]}
            for person in fields["person"]:
                shares.share(**act, person=person.username)
            if fields["group"] or not fields["person"]:
                shares.share(**act, group=fields["group"])
            messages.success(request, _("Shared."))
            return redirect("accounts:share", kind, pk)
    rows: list[dict[str, Any]] = [
        {"whom": whom, "is_person": isinstance(whom, User), "level": sharing.LEVEL_LABELS[level]}
        for level, whom in sharing.shares_of(thing)
    ]
    context = {"kind": shareable, "thing": thing, "url": shareable.url(thing), "form": form, "rows": rows}
    return render(request, "accounts/share.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SELF_MANAGE)
def share_take(request: SignedInRequest, kind: str, pk: int) -> HttpResponse:
    """Take a share back (`person`: username, or `group`: id)."""
    number = request.POST.get("group", "")
    group = int(number) if number.isdecimal() and len(number) < 19 else None
    shares.unshare(kind=kind, pk=pk, by=request.user, person=request.POST.get("person", ""), group=group)
    messages.success(request, _("Sharing removed."))
    return redirect("accounts:share", kind, pk)
