"""Signatures of webhooks, of those that come in and of those that go out.

The header `X-Aip-Signature: t=1700000000,v1=9f86d0…` holds when it was sent, in seconds since 1970, and the HMAC-SHA256
of `t.body` under a secret that both sides know. A sender that repeats a delivery after a lost answer adds its number,
`t=…,id=7f3a,v1=…`, and signs `t:id.body`: the same number starts nothing twice. No delivery holds for more than five
minutes, and each `v1` is tried, so that a secret can be changed without a gap.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError

HEADER = "X-Aip-Signature"
TOLERANCE = timedelta(minutes=5)
MAX_LENGTH = 1000  # characters of the header
MAX_SIGNATURES = 5
_TIME = re.compile(r"[0-9]{1,11}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BadSignature(DomainError, code="bad_signature", status=403):
    """A delivery that was not proven to come from who knows the secret, now."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery whose signature holds.

    Attributes:
        key: what tells it from others: the sender's number, else the digest of time and body. All of it is signed.
        sent: when the sender says that it was sent.
    """

    key: str
    sent: datetime


def header(secret: str, body: bytes, sent: datetime, delivery: str = "") -> str:
    """The value of the header for a body; `delivery` is letters, digits, - and _, at most 64, or nothing."""
    if delivery and not _ID.fullmatch(delivery):
        raise ValueError(delivery)
    stamp = str(int(sent.timestamp()))
    named = f",id={delivery}" if delivery else ""
    return f"t={stamp}{named},v1={_digest(secret, stamp, delivery, body)}"


def verify(secrets: Sequence[str], header: str, body: bytes, now: datetime) -> Delivery:
    """Return the delivery that a header proves.

    Args:
        secrets: each that holds at present, such as an old and a new one.
        header: value of the header; empty where there was none.

    Raises:
        BadSignature: it proves nothing; the sentence says what to look at.
    """
    stamp, delivery, signatures = _parse(header)
    sent = datetime.fromtimestamp(int(stamp), UTC)
    if abs(now - sent) > TOLERANCE:
        message = _("The signature is from %(sent)s, more than five minutes off: check the clock of the sender.")
        raise BadSignature(message % {"sent": sent.isoformat(timespec="seconds")})
    # each is compared, so that the time taken tells nothing
    matches = [
        hmac.compare_digest(_digest(secret, stamp, delivery, body), signature)
        for secret in secrets
        if secret
        for signature in signatures
    ]
    if not any(matches):
        message = _(
            "The signature does not match: sign the time, a dot and the body, byte by byte, with the secret of "
            "the trigger."
        )
        raise BadSignature(message)
    signed = hashlib.sha256(f"{stamp}.".encode() + body).hexdigest()
    return Delivery(f"id:{delivery}" if delivery else f"sha256:{signed}", sent)


def _digest(secret: str, stamp: str, delivery: str, body: bytes) -> str:
    # a colon or a dot follows the digits of the time, and no number has a dot: no text means two deliveries
    start = f"{stamp}:{delivery}." if delivery else f"{stamp}."
    return hmac.new(secret.encode(), start.encode() + body, hashlib.sha256).hexdigest()


def _parse(header_value: str) -> tuple[str, str, list[str]]:
    if not header_value:
        raise BadSignature(_("The header %(name)s is missing.") % {"name": HEADER})
    pairs = [pair.strip().partition("=") for pair in header_value[:MAX_LENGTH].split(",")]
    stamps = [value for name, _sign, value in pairs if name == "t"]
    ids = [value for name, _sign, value in pairs if name == "id"]
    signatures = [value for name, _sign, value in pairs if name == "v1" and _HEX.fullmatch(value)]
    sound = len(stamps) == 1 and _TIME.fullmatch(stamps[0]) and len(ids) <= 1 and signatures
    if (
        not sound
        or not all(map(_ID.fullmatch, ids))
        or len(signatures) > MAX_SIGNATURES
        or len(header_value) > MAX_LENGTH
    ):
        raise BadSignature(
            _("The header %(name)s must look like t=1700000000,v1=64 hexadecimal digits.") % {"name": HEADER}
        )
    return stamps[0], ids[0] if ids else "", signatures
