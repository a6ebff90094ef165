"""Pages of a person's notifications and their channels."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.access.permissions import Action
from accounts.forms.notices import NoticeForm
from accounts.http import SignedInRequest
from accounts.models import Notification
from accounts.services import notify, outbox
from aiplatform.lib import ids, keyset
from aiplatform.lib.pages import errors_shown_on, needs

LAST = 5  # in the bell's list
NEWS = 3  # that pop up at once


@require_GET
@needs(Action.SELF_MANAGE)
def notification_list(request: SignedInRequest) -> HttpResponse:
    """All notifications of the person, newest first."""
    rows = Notification.objects.visible_to(request.user)
    if unread := request.GET.get("unread") == "1":
        rows = rows.filter(read_at=None)
    page = keyset.page(request, rows, size=50)
    for row in page.rows:
        row.about = notify.KINDS.find(row.kind)
    return render(request, "accounts/notifications.html", {"page": page, "unread": unread})


@require_GET
@needs(Action.SELF_MANAGE)
def notification_bell(request: SignedInRequest) -> HttpResponse:
    """What the bell shows. htmx gets its list of the last few; base/bell.js, which polls, gets what is new.

    JSON: {"unread", "label", "newest", "news"}: unread ones that came after `?after=` (a number), the newest first.
    """
    if request.htmx:
        return _bell_list(request)
    rows = Notification.objects.visible_to(request.user).order_by("-pk")
    after = ids.number(request.GET.get("after", ""))
    newest = rows.values_list("pk", flat=True).first() or 0
    came = list(rows.filter(pk__gt=after, read_at=None)[:NEWS]) if after is not None and newest > after else []
    unread = notify.unread(request.user)
    return JsonResponse(
        {
            "unread": unread,
            "label": notify.unread_words(unread),
            "newest": newest,
            "news": [
                {
                    "id": row.pk,
                    "kind": row.kind,
                    "title": str(row.title),
                    "text": str(row.text),
                    "url": reverse("accounts:notification", args=[row.pk]),
                    "age_s": round((now() - row.created_at).total_seconds()),
                }
                for row in came
            ],
        }
    )


def _bell_list(request: SignedInRequest) -> HttpResponse:
    rows: list[Any] = list(Notification.objects.visible_to(request.user)[:LAST])
    for row in rows:
        row.about = notify.KINDS.find(row.kind)
    context = {"rows": rows, "any_unread": notify.unread(request.user) > 0}
    return render(request, "components/_bell_list.html", context)


@require_GET
@needs(Action.SELF_MANAGE)
def notification_open(request: SignedInRequest, pk: int) -> HttpResponse:
    """Go to what a notification is about and mark it as read."""
    row = get_object_or_404(Notification.objects.visible_to(request.user), pk=pk)
    notify.mark_read(user=request.user, pk=row.pk)
    return redirect(notify.own_path(row.url) or "accounts:notifications")


@require_POST
@needs(Action.SELF_MANAGE)
def notification_read(request: SignedInRequest) -> HttpResponse:
    """Mark all as read; for htmx, which is the bell, return its updated list."""
    notify.mark_read(user=request.user)
    if request.htmx:
        return _bell_list(request)
    return redirect("accounts:notifications")


@needs(Action.SELF_MANAGE)
def notification_choices(request: SignedInRequest) -> HttpResponse:
    """Choose the kinds that are sent by mail and by webhook; a button tests both."""
    chosen = notify.choices(request.user)
    form = NoticeForm(request.POST or None, chosen=chosen)
    if request.method == "POST" and form.is_valid():
        with errors_shown_on(form):
            notify.choose(
                user=request.user,
                mail=form.chosen("mail"),
                webhook=form.chosen("webhook"),
                webhook_url=form.cleaned_data["webhook_url"],
            )
            messages.success(request, _("Settings saved."))
            return redirect("accounts:notification-choices")
    context = {"form": form, "chosen": chosen, "mail_is_set_up": outbox.mail_is_set_up()}
    return render(request, "accounts/notification_choices.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SELF_MANAGE)
def notification_test(request: SignedInRequest) -> HttpResponse:
    """Send a test message over every channel."""
    sent = notify.try_out(request.user)
    if sent:
        message = _("A test notification is being sent by: %(channels)s.") % {"channels": ", ".join(sent)}
        messages.info(request, message)
    else:
        messages.warning(request, _("No e-mail address and no webhook are set."))
    return redirect("accounts:notification-choices")
