"""Push targets: made, changed, tested, forgotten. Their secrets go in and never come out."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import outbound, sealed, wording
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from aiplatform.lib.parsers import is_sound
from aiplatform.lib.titles import TITLE
from inference.delivery.push import pushes
from inference.delivery.push.models import PushTarget, UsableBy
from inference.delivery.push.protocol import Destination, PushFailed, PushProtocol
from inference.delivery.push.protocols import PROTOCOLS

LONGEST_ADDRESS, LONGEST_OPTION, LONGEST_SECRET, LONGEST_CA = 500, 300, 20_000, 100_000


def create(
    *, user: User, name: str, kind: str, address: str, options: Mapping[str, Any] | None = None, secret: str = "",
    ca: str = "", visibility: str = UsableBy.PRIVATE,
) -> PushTarget:  # fmt: skip
    """Create a target.

    Args:
        kind: a code of `ways.WAYS`.
        options: what the kind asks for, in the open.
        secret: a token, a password or a private key; sealed, and never shown again.
        ca: certificates in PEM that are believed besides the machine's own.

    Raises:
        Invalid: see `check`.
        NameTaken: the person has a target of this name.
    """
    options = checked_options(kind, options or {}, quiet=True)
    check(name=name, kind=kind, address=address, options=options, secret=secret, ca=ca, visibility=visibility)
    try:
        with transaction.atomic():
            target: PushTarget = PushTarget.objects.create(
                owner=user, name=name, kind=kind, address=address, options=options, secret=_sealed(secret),
                ca=ca.strip(), visibility=visibility,
            )  # fmt: skip
            audit.record(user, "push_target_made", target)
    except IntegrityError:
        raise _taken(name) from None
    return target


def check(
    *, name: str = "target", kind: str = "", address: str | None = None, options: Mapping[str, Any] | None = None,
    secret: str | None = None, ca: str = "", visibility: str = UsableBy.PRIVATE,
) -> None:  # fmt: skip
    """Refuse at once what `create` refuses; values that are None are not checked.

    Raises:
        Invalid: an unknown kind or option, an address of another sort or inside the network, no certificate.
    """
    refusals, protocol = Refusals(), PROTOCOLS.get(kind)
    with refusals:
        if not TITLE.regex.match(name) or len(name) > 100:  # type: ignore[union-attr]  # compiled by the validator
            raise Invalid(TITLE.message, field="name")
    with refusals:
        if protocol is None:
            message = _("Unknown kind “%(kind)s”. Available kinds: %(known)s.")
            raise Invalid(message % {"kind": kind[:50], "known": ", ".join(PROTOCOLS)}, field="kind")
    with refusals:
        if visibility not in UsableBy.values:
            raise Invalid(_("The visibility of a target must be private or groups."), field="visibility")
    if protocol is not None:
        with refusals:
            if address is not None:
                _check_address(protocol, address)
        with refusals:
            checked_options(kind, options or {})
        with refusals:
            _check_secret(protocol, secret)
        with refusals:
            _check_ca(protocol, ca)
        if not refusals and address is not None:
            with refusals:
                protocol.check(Destination(address, options or {}, secret or ""))
    refusals.end()


def _check_address(protocol: PushProtocol, address: str) -> None:
    if len(address) > LONGEST_ADDRESS or not is_sound(address):
        message = _("An address can have at most %(most)s characters.")
        raise Invalid(message % {"most": LONGEST_ADDRESS}, field="address")
    if "?" in address or "#" in address:
        message = _("The address must not contain a question mark or number sign: put secrets into the secret field.")
        raise Invalid(message, field="address")
    try:
        outbound.resolve(address, allowed=settings.PUSH_ALLOWED, ports=protocol.ports)
    except outbound.InnerAddress:
        inner_message = wording.message("push.inner", host=urlsplit(address).hostname)
        raise Invalid(inner_message, field="address") from None
    except outbound.ForbiddenAddress as exc:
        raise Invalid(exc.message, field="address") from None
    except OSError:
        return  # it may be found later


def checked_options(kind: str, options: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
    """Return the options of a kind, each with its value or its default.

    Args:
        quiet: leave errors to `check`, and return unknown kinds unchanged.

    Raises:
        Invalid: an option that the kind does not know, or of another type, or one that is missing.
    """
    protocol = PROTOCOLS.get(kind)
    if protocol is None:
        return dict(options)
    values: dict[str, Any] = {}
    by_name = {option.name: option for option in protocol.options}
    for name in options:
        if name not in by_name:
            message = _("This kind of target has no option “%(name)s”. Available options: %(known)s.")
            facts = {"name": str(name)[:50], "known": ", ".join(by_name) or "–"}
            raise Invalid(message % facts, field="options")
    for option in protocol.options:
        value = options.get(option.name, option.default)
        if option.yes_no:
            is_valid = isinstance(value, bool)
        else:
            is_valid = isinstance(value, str) and len(value) <= LONGEST_OPTION and is_sound(value)
            is_valid = is_valid and value.isprintable()
        if not is_valid:
            message = _("Invalid value of the option “%(name)s”.")
            raise Invalid(message % {"name": option.name}, field="options")
        if option.required and not value and not quiet:
            message = _("The option “%(name)s” is required.")
            raise Invalid(message % {"name": option.name}, field=f"option_{option.name}")
        values[option.name] = value.strip() if isinstance(value, str) else value
    return values


def _check_secret(protocol: PushProtocol, secret: str | None) -> None:
    if secret is None:
        return
    if protocol.secret_required and not secret:
        raise Invalid(_("This kind of target requires a secret."), field="secret")
    if len(secret) > LONGEST_SECRET or not is_sound(secret):
        raise Invalid(_("At most %(most)s characters.") % {"most": LONGEST_SECRET}, field="secret")
    key = secret.lstrip().startswith("-----BEGIN")
    if not key and not (secret.isprintable() and secret.isascii()):
        raise Invalid(_("A secret must be one line of letters, digits and ASCII symbols."), field="secret")


def _check_ca(protocol: PushProtocol, ca: str) -> None:
    if not ca.strip():
        return
    if not protocol.has_ca:
        raise Invalid(_("This kind of target does not use certificates."), field="ca")
    if len(ca) > LONGEST_CA:
        raise Invalid(_("At most %(most)s characters.") % {"most": LONGEST_CA}, field="ca")
    try:
        ssl.create_default_context().load_verify_locations(cadata=ca.strip())
    except (ssl.SSLError, ValueError, TypeError):
        raise Invalid(
            _("This is not a PEM certificate. Paste all of it, including the first and last line."), field="ca"
        ) from None


def change(
    *, target: PushTarget, by: User, name: str | None = None, address: str | None = None,
    options: Mapping[str, Any] | None = None, secret: str = "", ca: str | None = None, visibility: str | None = None,
) -> PushTarget:  # fmt: skip
    """Change a target; None keeps a value. An empty secret keeps the stored one, but not for another address.

    Raises:
        Invalid: see `check`; or the address changes without a new secret: the stored one would go to another server.
        NameTaken.
    """
    address = target.address if address is None else address
    options = target.options if options is None else checked_options(target.kind, options, quiet=True)
    changed: dict[str, Any] = {
        "name": target.name if name is None else name,
        "address": address,
        "options": options,
        "ca": target.ca if ca is None else ca.strip(),
        "visibility": target.visibility if visibility is None else visibility,
    }
    check(kind=target.kind, secret=secret if secret or not target.secret else None, **changed)
    moved = address != target.address or _may_reach_another_server(target, changed)
    if moved and target.secret and not secret:
        message = _("Enter the secret again: the stored one belongs to the previous address and certificate authority.")
        raise Invalid(message, field="secret")
    if address != target.address:
        changed["host_key"] = ""
    if secret:
        changed["secret"] = _sealed(secret)
    changed |= {"tested_at": None, "message": wording.Message()}
    try:
        with transaction.atomic():
            PushTarget.objects.filter(pk=target.pk).update(**changed)
            target.refresh_from_db()
            audit.record(by, "push_target_changed", target)
    except IntegrityError:
        raise _taken(changed["name"]) from None
    return target


def _may_reach_another_server(target: PushTarget, changed: Mapping[str, Any]) -> bool:
    """Whether another server could read the secret after this change, because another authority is trusted."""
    return bool(changed["ca"]) and changed["ca"] != target.ca


def forget_host_key(*, target: PushTarget, by: User) -> None:
    """Let the next test pin the key that the machine shows then."""
    PushTarget.objects.filter(pk=target.pk).update(host_key="", tested_at=None, message=wording.Message())
    audit.record(by, "push_host_key_forgotten", target)


def test(target: PushTarget) -> bool:
    """Test a target and store the result; whether it accepts the credentials. Pins the key of a host."""
    message, host_key = wording.Message(), target.host_key
    try:
        host_key = PROTOCOLS[target.kind].test(to_destination(target)).host_key
    except PushFailed as exc:
        message = wording.of_error(exc)
    PushTarget.objects.filter(pk=target.pk, address=target.address).update(
        tested_at=now(), message=message, host_key=host_key
    )
    target.refresh_from_db()
    return not message


def delete(*, target: PushTarget, by: User) -> None:
    """Delete a target; waiting and running pushes fail with the reason. Files already pushed stay there."""
    with transaction.atomic():
        pushes.end_those_to(target)
        audit.record(by, "push_target_deleted", target)
        target.delete()


def to_destination(target: PushTarget) -> Destination:
    """Return the destination of a target with its decrypted secret.

    Raises:
        PushFailed: it was sealed under another secret key of the platform.
    """
    return pushes.to_destination(target)


def _sealed(secret: str) -> str:
    return sealed.seal({"secret": secret} if secret else {})


def _taken(name: str) -> NameTaken:
    return NameTaken(_("You already have a target named “%(name)s”.") % {"name": name})


def fingerprint(target: PushTarget) -> str:
    """The pinned key of a host as OpenSSH writes it, "SHA256:…" (RFC 4648 without padding); "" where none is known."""
    parts = target.host_key.split()
    if len(parts) < 2:
        return ""
    digest = hashlib.sha256(base64.b64decode(parts[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
