"""The second factor: time-based codes (RFC 6238) and recovery codes, each valid once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from datetime import datetime

import pyotp
import segno
from django.conf import settings
from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import RecoveryCode, SecondFactor, User
from accounts.services import audit, ceiling
from aiplatform.lib.errors import DomainError

ISSUER = "aiplatform"
RECOVERY_CODES = 10
DRIFT = 1  # steps of 30 s that a phone's clock may be off


class WrongCode(DomainError, code="wrong_code", status=422, field="code"): ...


class Needed(DomainError, code="second_factor_needed", status=401, field="code"):
    """Signing in needs a code as well."""


def _wrong() -> WrongCode:
    return WrongCode(_("The code is wrong or was already used. Codes change every 30 seconds."))


def _secret(factor: SecondFactor) -> str:
    """Derive the secret (base32 of 160 bits) from the platform's key: the database alone does not give it away."""
    key = hashlib.sha256(f"second-factor:{settings.SECRET_KEY}".encode()).digest()
    return base64.b32encode(hmac.digest(key, factor.nonce.encode(), "sha256")[:20]).decode()


def is_on(user: User) -> bool:
    """Whether signing in needs a code."""
    return SecondFactor.objects.filter(user=user).exclude(confirmed_at=None).exists()


@transaction.atomic
def start_setup(user: User) -> tuple[str, str]:
    """Return a secret as (base32 to type, QR code as data URI of an SVG), the same until it is confirmed."""
    factor, _made = SecondFactor.objects.get_or_create(user=user, defaults={"nonce": secrets.token_hex(32)})
    if factor.confirmed_at is not None:
        raise DomainError(_("The second factor is already enabled. Disable it first."))
    secret = _secret(factor)
    address = pyotp.TOTP(secret).provisioning_uri(name=user.username, issuer_name=ISSUER)
    return secret, segno.make(address, error="m", micro=False).svg_data_uri(scale=5, border=3, light="white")


def _take_step(factor: SecondFactor, code: str, moment: datetime) -> bool:
    """Accept the code of a step that is near and newer than the last; of two at once, one gets it."""
    totp = pyotp.TOTP(_secret(factor))
    here = totp.timecode(moment)
    for step in range(here - DRIFT, here + DRIFT + 1):
        if step > factor.last_step and hmac.compare_digest(totp.generate_otp(step), code):
            fresh = SecondFactor.objects.filter(pk=factor.pk, last_step=factor.last_step)
            return bool(fresh.update(last_step=step))
    return False


def _digits(typed: str) -> str:
    return re.sub(r"[\s-]", "", typed)[:40]


@transaction.atomic
def confirm(user: User, code: str) -> list[str]:
    """Switch the factor on with a first right code; returns the recovery codes, this once.

    Raises:
        WrongCode: the phone does not hold this secret, or its clock is off.
    """
    factor = SecondFactor.objects.filter(user=user, confirmed_at=None).first()
    if factor is None or not _take_step(factor, _digits(code), now()):
        raise _wrong()
    SecondFactor.objects.filter(pk=factor.pk).update(confirmed_at=now())
    audit.record(user, "second_factor_on", user)
    return _new_codes(user)


def _new_codes(user: User) -> list[str]:
    user.recovery_codes.all().delete()
    codes = [base64.b32encode(secrets.token_bytes(10)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(code)) for code in codes)
    return ["-".join(code[at : at + 4] for at in range(0, 16, 4)) for code in codes]


def _digest(code: str) -> str:
    return hashlib.sha256(code.lower().encode()).hexdigest()


@transaction.atomic
def check(user: User, typed: str) -> None:
    """Take a code from the phone, or a recovery code; each counts once.

    Raises:
        WrongCode: neither.
    """
    code = _digits(typed)
    factor = SecondFactor.objects.filter(user=user).exclude(confirmed_at=None).first()
    if factor is not None and _take_step(factor, code, now()):
        return
    unused = RecoveryCode.objects.filter(user=user, digest=_digest(code), used_at=None)
    if factor is not None and unused.update(used_at=now()):
        left = user.recovery_codes.filter(used_at=None).count()
        audit.record(user, "recovery_code_used", user, left=left)
        return
    raise _wrong()


@transaction.atomic
def switch_off(user: User, *, by: User) -> None:
    """Switch the factor off; its recovery codes are deleted.

    Raises:
        BeyondYou: another user's account that may do more than `by`.
        FirstAdministrator: only its owner switches the second factor of that account off.
    """
    ceiling.touch(by, user)
    if by.pk != user.pk:
        ceiling.stays(user)
    deleted, _kinds = SecondFactor.objects.filter(user=user).delete()
    user.recovery_codes.all().delete()
    if deleted:
        audit.record(by, "second_factor_off", user)
