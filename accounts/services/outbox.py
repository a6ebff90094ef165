"""Outgoing mail and webhooks. Each row is sent by the process that claimed it.

A message is claimed, sent, and recorded. Where a process dies between sending and recording,
the claim runs out after two minutes and the message goes out a second time: with the same `Message-ID` or
`X-Aip-Delivery`, so that the receiver can tell. Nothing else sends twice, and nothing is forgotten.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import smtplib
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import formatdate

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.utils import translation
from django.utils.timezone import now

from accounts.models import Delivery, Notification
from accounts.services import named_secrets
from aiplatform.lib import outbound, sealed, signatures
from aiplatform.lib.claims import Claim, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.wording import Message, message, of_error, verbatim

log = logging.getLogger(__name__)

BACK_OFF_S = (20, 60, 300, 1800, 7200)
"""Pauses after the first, second, … failure; after the last one it is given up."""
CLAIMS = Claims(ttl=timedelta(minutes=2), epoch="attempts")
RETENTION = timedelta(days=30)
NOTIFICATION_RETENTION = timedelta(days=180)
AT_ONCE = 200
MAX_TITLE_LENGTH, MAX_TEXT_LENGTH = 200, 1000  # characters
NOTHING = Message()
SIGNING, BEARER = "signing", "bearer"  # what is sealed in a row: a key to sign with, a word that proves who sends it
BUSY_S = 45.0
"""How long one sweep sends before it leaves the rest to the next."""
MAIL_RETRY_DELAY_S = 15.0
_mail_rest = {"until": float("-inf")}
_ANSWERS = (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused)


class NeverAgain(Exception):
    """The receiver refused for good."""


def mail_is_set_up() -> bool:
    """Whether a mail server is configured."""
    return bool(settings.EMAIL_HOST)


def check_address(url: str) -> None:
    """Refuse a webhook address that may never be called; one that does not resolve now passes.

    Raises:
        ForbiddenAddress: with the reason.
    """
    try:
        outbound.resolve(url, allowed=settings.WEBHOOK_ALLOWED)
    except OSError:
        return


def add(
    channel: str,
    target: str,
    *,
    kind: str,
    key: str,
    title: Message,
    text: Message = NOTHING,
    url: str = "",
    secret: str = "",
    language: str = "",
    proofs: Mapping[str, str] | None = None,
) -> Delivery | None:
    """Store a message to be sent, once per `key`; None if it was stored before or cannot be sent.

    Args:
        language: the receiver's, in which the text is made when it is sent; empty: the platform's.
        proofs: of a webhook, kept encrypted until it is over: `SIGNING`, which signs as `aiplatform.lib.signatures`
            says, and `BEARER`, which goes into the header `Authorization`.
    """
    if channel == Delivery.Channel.MAIL and not mail_is_set_up():
        return None
    columns = {"kind": kind, "title": title, "text": text, "url": url, "secret": secret, "language": language}
    columns["sealed"] = sealed.seal(proofs or {})
    try:
        with transaction.atomic():
            row = Delivery.objects.create(channel=channel, target=target, key=key, **columns)
    except IntegrityError:
        return None
    enqueue("accounts.deliver", delivery_id=row.pk)
    return row


def send_unrecorded(
    channel: str, target: str, *, kind: str, key: str, title: Message, text: Message, url: str, secret: str
) -> bool:
    """Send a message that the database has no room for; whether it was sent. It is not tried again."""
    if channel == Delivery.Channel.MAIL and not mail_is_set_up():
        return False
    row = Delivery(channel=channel, target=target, kind=kind, key=key, title=title, text=text, url=url, secret=secret)
    row.created_at = now()
    try:
        with translation.override(settings.LANGUAGE_CODE):
            _send(row)
    except (OSError, http.client.HTTPException, smtplib.SMTPException, NeverAgain, ValueError) as exc:
        log.warning("key=%s not sent: %s", key, exc)
        return False
    return True


def deliver(delivery_id: int) -> bool:
    """Send one message if it is due and no other process sends it; returns whether it was sent."""
    moment = now()
    mine = Delivery.objects.filter(pk=delivery_id, state=Delivery.State.WAITING, not_before__lte=moment)
    if _rests(mine, moment):
        return False
    claim = CLAIMS.acquire(mine, state=Delivery.State.SENDING)
    if claim is None:
        return False
    row = Delivery.objects.get(pk=delivery_id)
    try:
        with translation.override(row.language or settings.LANGUAGE_CODE):
            _send(row)
    except (OSError, http.client.HTTPException, smtplib.SMTPException) as exc:
        if row.channel == Delivery.Channel.MAIL and not isinstance(exc, _ANSWERS):
            _mail_rest["until"] = time.monotonic() + MAIL_RETRY_DELAY_S
        _try_later(row, claim, _to_message(exc))
        return False
    except (NeverAgain, ValueError) as exc:  # or what cannot be written at all; a wrong certificate is an OSError
        _record(row, claim, Delivery.State.FAILED, _to_message(exc))
        return False
    _record(row, claim, Delivery.State.SENT)
    return True


def sweep() -> int:
    """Release stale claims, send what is due, delete what is long over; returns how many were sent."""
    moment, begun = now(), time.monotonic()
    stale = CLAIMS.free(Delivery.objects.filter(state=Delivery.State.SENDING))
    if freed := stale.update(state=Delivery.State.WAITING, not_before=moment, holder=""):
        log.warning("deliveries=%s were claimed and never recorded, they go out again", freed)
    due = Delivery.objects.filter(state=Delivery.State.WAITING, not_before__lte=moment).order_by("not_before", "pk")
    sent = 0
    for pk in list(due.values_list("pk", flat=True)[:AT_ONCE]):
        sent += deliver(pk)
        if time.monotonic() - begun > BUSY_S:
            break
    Delivery.objects.filter(ended_at__lt=moment - RETENTION).delete()
    Notification.objects.filter(created_at__lt=moment - NOTIFICATION_RETENTION).delete()
    return sent


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What `X-Aip-Signature` holds: "sha256=" and the HMAC of "timestamp.body" in hex."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def _rests(mine: QuerySet[Delivery], moment: datetime) -> bool:
    """Whether this receiver is skipped for now, so that one that hangs does not hold up all others.

    A webhook that failed is asked once per pause, whatever else waits for it; a mail server that does not
    answer at all rests for 15 s in each process.
    """
    row = mine.first()
    if row is None:
        return False
    if row.channel == Delivery.Channel.MAIL:
        return time.monotonic() < _mail_rest["until"]
    same = Delivery.objects.filter(
        channel=row.channel, target=row.target, state=Delivery.State.WAITING, not_before__gt=moment, attempts__gt=0
    )
    until = same.exclude(pk=row.pk).aggregate(at=Max("not_before"))["at"]
    if until is None or row.attempts > 0:
        return False
    mine.update(not_before=until)
    return True


def _send(row: Delivery) -> None:
    if row.channel == Delivery.Channel.MAIL:
        _mail(row)
    else:
        _webhook(row)


def _mail(row: Delivery) -> None:
    link = f"{settings.SITE_URL}{row.url}" if row.url else ""
    title, text = _title_of(row), str(row.text)[:MAX_TEXT_LENGTH]
    body = "\n\n".join(filter(None, (title, text, link, "aiplatform")))
    headers = {
        "Message-ID": f"<delivery-{row.pk}-{int(row.created_at.timestamp())}@aiplatform>",
        "Date": formatdate(row.created_at.timestamp()),
        "Auto-Submitted": "auto-generated",
    }
    mail = EmailMessage(f"[aiplatform] {title}", body, settings.DEFAULT_FROM_EMAIL, [row.target], headers=headers)
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as exc:
        codes = [code for code, _said in exc.recipients.values()]
        if codes and min(codes) >= 500:
            raise NeverAgain(message("delivery.address_refused")) from exc
        raise
    except ValueError as exc:  # an address or header that cannot be sent at all
        raise NeverAgain(str(exc)) from exc


def _webhook(row: Delivery) -> None:
    body = json.dumps(
        {
            "id": row.key,
            "kind": row.kind,
            "title": _title_of(row),
            "text": str(row.text)[:MAX_TEXT_LENGTH],
            "facts": dict(row.title.facts),  # what the title says, for programs
            "url": f"{settings.SITE_URL}{row.url}" if row.url else "",
            "created_at": row.created_at.isoformat(),
        },
        ensure_ascii=False,
    ).encode()
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "aiplatform",
        "X-Aip-Delivery": row.key,
        "X-Aip-Timestamp": stamp,
    }
    if row.secret:  # else anybody could sign
        headers["X-Aip-Signature"] = signature(row.secret, stamp, body)
    headers |= _proofs(row, body)
    try:
        status = outbound.post(row.target, body, headers, allowed=settings.WEBHOOK_ALLOWED)
    except outbound.ForbiddenAddress as exc:
        raise NeverAgain(of_error(exc)) from exc
    if 200 <= status < 300:
        return
    answered = message("delivery.answered", status=status)
    if 300 <= status < 500 and status not in {408, 429}:
        raise NeverAgain(answered)
    raise OSError(answered)


def _proofs(row: Delivery, body: bytes) -> dict[str, str]:
    """The headers that prove who sends it, by what is sealed in its row."""
    try:
        proofs = sealed.unseal(row.sealed)
    except sealed.Unsealable as exc:
        raise NeverAgain(message("secret.unreadable", page=named_secrets.PAGE)) from exc
    headers = {}
    if SIGNING in proofs:
        headers[signatures.HEADER] = signatures.header(proofs[SIGNING], body, now(), row.key)
    if BEARER in proofs:
        headers["Authorization"] = f"Bearer {proofs[BEARER]}"
    return headers


def _title_of(row: Delivery) -> str:
    """One line, whatever names stand in it."""
    return " ".join(str(row.title).split())[:MAX_TITLE_LENGTH]


def _to_message(exc: Exception) -> Message:
    reason = exc.args[0] if exc.args else None
    if isinstance(reason, Message):
        return reason
    return verbatim(exc if isinstance(exc, NeverAgain | ValueError) else f"{type(exc).__name__}: {exc}")


def _record(row: Delivery, claim: Claim, state: str, error: Message = NOTHING) -> None:
    claim.release(state=state, ended_at=now(), error=error, secret="", sealed="")
    if error:
        log.warning("delivery=%s channel=%s given up: %s", row.pk, row.channel, _plainly(error))


def _try_later(row: Delivery, claim: Claim, error: Message) -> None:
    if row.attempts > len(BACK_OFF_S):
        _record(row, claim, Delivery.State.FAILED, error)
        return
    later: datetime = now() + timedelta(seconds=BACK_OFF_S[row.attempts - 1])
    claim.release(state=Delivery.State.WAITING, not_before=later, error=error)
    log.info("delivery=%s channel=%s tries again at %s: %s", row.pk, row.channel, later.isoformat(), _plainly(error))


def _plainly(error: Message) -> str:
    """The error for the log, whose readers share one language."""
    with translation.override("en"):
        return str(error)
