"""Notifications: one row per (person, kind, key), then mail and webhook as the person chose.

    notify(job.owner, "finished", title=message("news.completed", …), url=f"/jobs/{job.pk}/", key=f"job-{job.pk}-2")

Rows keep codes and facts: a page, a mail or a webhook makes the text when it is shown or sent.

A repeated key is ignored: callers may repeat themselves after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

from django.db import transaction
from django.db.models import Count, Max
from django.utils.crypto import get_random_string
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.models import Delivery, NoticeChoices, Notification, User
from accounts.services import outbox
from aiplatform.lib import outbound, rates
from aiplatform.lib.errors import Invalid
from aiplatform.lib.prepared import PreparedQuery
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message, message


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of notification.

    Attributes:
        hue: color of its icon, one of those of chips.
        mail: whether people who have not chosen get it by mail.
    """

    name: str
    label: Any
    icon: str
    hue: str = "wait"
    mail: bool = True


class Content(TypedDict):
    """What a notification says, and the path that shows more."""

    title: Message
    text: Message
    url: str


TESTS_PER_QUARTER = 10
NOTHING = Message()
KINDS: Registry[Kind] = Registry("kind of notification")
KINDS.register(
    Kind("finished", _("A job of mine completed"), "ok", "run"),
    Kind("failed", _("A job of mine failed or was stopped by another user"), "fail", "fail"),
    Kind("preempted", _("A job of mine was preempted"), "pause", "pause", mail=False),
    Kind("approval", _("A request needs my approval, or was answered"), "wait"),
    Kind("quota", _("A limit of mine is almost or fully used"), "gauge"),
    Kind("idle", _("A job of mine holds devices without using them"), "clock"),
    Kind("time", _("A job of mine is close to its maximum run time"), "clock"),
    Kind("alarm", _("An alert about the platform or the nodes that run my jobs"), "alarms"),
)


@transaction.atomic
def notify(
    user: User, kind: str, *, title: Message, text: Message = NOTHING, url: str = "", key: str
) -> Notification | None:
    """Notify `user` once.

    Args:
        title, text: one sentence and more.
        url: a path of this site that shows what it is about.
        key: what it is about; (user, kind, key) is sent once, however often this is called.

    Returns:
        The row; None if the user was notified before, or has no working account.
    """
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a registered kind of notification.")
    if not user.is_active:
        return None
    content: Content = {"title": title, "text": text, "url": own_path(url)}
    row, fresh = Notification.objects.get_or_create(user=user, kind=kind, key=key[:120], defaults=content)
    if not fresh:
        return None
    chosen = choices(user)
    if kind in chosen.mail and user.email:
        key = f"notification-{row.pk}-mail"
        outbox.add(Delivery.Channel.MAIL, user.email, kind=kind, key=key, language=user.speaks, **content)
    if kind in chosen.webhook and chosen.webhook_url:
        outbox.add(
            Delivery.Channel.WEBHOOK,
            chosen.webhook_url,
            kind=kind,
            key=f"notification-{row.pk}-webhook",
            secret=chosen.webhook_secret,
            language=user.speaks,
            **content,
        )
    return row


def own_path(url: str) -> str:
    """Return `url` where it is a path of this site, else nothing: a notification never links to another site."""
    return url[:500] if url.startswith("/") and not url.startswith(("//", "/\\")) else ""


def choices(user: User) -> NoticeChoices:
    """Return what the person chose, or the defaults in an unsaved row."""
    row = NoticeChoices.objects.filter(user=user).first()
    return row or NoticeChoices(user=user, mail=[kind.name for kind in KINDS if kind.mail])


def choose(*, user: User, mail: Sequence[str], webhook: Sequence[str], webhook_url: str) -> NoticeChoices:
    """Save the person's channels. A new webhook address gets a new secret.

    Raises:
        Invalid: an unknown kind, or webhooks are chosen without an address.
        ForbiddenAddress: the address is invalid, or inside this network.
    """
    unknown = sorted({*mail, *webhook} - set(KINDS.names()))
    if unknown:
        raise Invalid(_("Unknown kind %(name)s.") % {"name": unknown[0][:30]})
    webhook_url = webhook_url.strip()
    if webhook and not webhook_url:
        raise Invalid(_("Enter the address of the webhook."), field="webhook_url")
    row = choices(user)
    if webhook_url and webhook_url != row.webhook_url:
        outbox.check_address(webhook_url)
    if webhook_url != row.webhook_url:
        row.webhook_secret = get_random_string(40) if webhook_url else ""
    row.mail = [name for name in KINDS.names() if name in mail]
    row.webhook = [name for name in KINDS.names() if name in webhook]
    row.webhook_url = webhook_url
    row.save()
    return row


_UNREAD = PreparedQuery(
    lambda user: (
        Notification.objects.filter(user=user, read_at=None)
        .order_by()
        .values("user")
        .annotate(unread=Count("pk"), newest=Max("pk"))
        .values_list("unread", "newest")
    )
)


class Unread(NamedTuple):
    """How many notifications a person has not read, and the id of the newest of them; 0 where there is none."""

    total: int = 0
    newest: int = 0


def unread_of(user: User) -> Unread:
    """Return the person's unread notifications, for the bell."""
    return next((Unread(*row) for row in _UNREAD(user.pk)), Unread())


def unread(user: User) -> int:
    """Count the person's unread notifications."""
    return unread_of(user).total


def unread_words(count: int) -> str:
    """The number of unread notifications, for the ear."""
    if not count:
        return str(_("Notifications"))
    return ngettext("%(unread)s unread notification", "%(unread)s unread notifications", count) % {"unread": count}


def mark_read(*, user: User, pk: int | None = None) -> int:
    """Mark one notification of this person, or all of them, as read; returns how many were unread."""
    rows = Notification.objects.filter(user=user, read_at=None)
    if pk is not None:
        rows = rows.filter(pk=pk)
    return int(rows.update(read_at=now()))


def try_out(user: User) -> list[str]:
    """Send a test message over every channel the person has; returns the channels.

    Raises:
        TooOften: the address or webhook may belong to another person, who must not be flooded.
    """
    rates.limit(f"test:{user.pk}", max_count=TESTS_PER_QUARTER, within_s=900)
    row = choices(user)
    content: Content = {"title": message("notice.test"), "text": message("notice.arrived"), "url": "/"}
    stamp = f"test-{user.pk}-{get_random_string(12)}"
    sent = []
    if user.email and outbox.mail_is_set_up():
        outbox.add(Delivery.Channel.MAIL, user.email, kind="test", key=f"{stamp}-mail", language=user.speaks, **content)
        sent.append(str(Delivery.Channel.MAIL.label))
    if row.webhook_url:
        secret = row.webhook_secret
        outbox.add(
            Delivery.Channel.WEBHOOK,
            row.webhook_url,
            kind="test",
            key=f"{stamp}-webhook",
            secret=secret,
            language=user.speaks,
            **content,
        )
        sent.append(str(Delivery.Channel.WEBHOOK.label))
    return sent


ForbiddenAddress = outbound.ForbiddenAddress
