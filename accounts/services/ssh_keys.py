"""Public SSH keys, checked byte by byte before they are stored."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import SshKey, User
from accounts.services import audit
from aiplatform.lib.errors import DomainError, Invalid

MAX_KEYS = 20  # keys of one person
MAX_NAME_LENGTH = 50
MIN_RSA_BITS = 3072
#: Kind → how many fields follow its name in the key (RFC 4253, RFC 5656, RFC 8709, OpenSSH PROTOCOL.u2f).
KINDS = {
    "ssh-ed25519": 1,
    "ssh-rsa": 2,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519@openssh.com": 2,
    "sk-ecdsa-sha2-nistp256@openssh.com": 3,
}


class KeyTaken(DomainError, code="ssh_key_taken", field="line"): ...


def _wrong() -> Invalid:
    return Invalid(
        _("This is not a public key. Paste the one line of a file that ends in .pub, e.g. “ssh-ed25519 AAAA…”."),
        field="line",
    )


def _fields(blob: bytes) -> list[bytes]:
    """Split a key into its length-prefixed fields, which must fill it to the last byte."""
    fields, at = [], 0
    while at < len(blob):
        if at + 4 > len(blob):
            raise _wrong()
        (length,) = struct.unpack_from(">I", blob, at)
        at += 4
        if length > len(blob) - at:
            raise _wrong()
        fields.append(blob[at : at + length])
        at += length
    return fields


def parse(text: str) -> tuple[str, str, str]:
    """Parse a pasted public key to (kind, "kind base64", "SHA256:…"), without options and comments.

    Raises:
        Invalid: a private key, several lines, an unknown kind, a broken or a short key.
    """
    if "PRIVATE KEY" in text:
        raise Invalid(_("This is a private key. Never share it; paste the line from the .pub file."), field="line")
    parts = text.strip().split(" ")
    if "\n" in text.strip() or len(parts) < 2 or parts[0] not in KINDS:
        raise _wrong()
    kind = parts[0]
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError) as exc:
        raise _wrong() from exc
    fields = _fields(blob)
    if not fields or fields[0] != kind.encode() or len(fields) != KINDS[kind] + 1:
        raise _wrong()
    if kind == "ssh-rsa" and int.from_bytes(fields[2], "big").bit_length() < MIN_RSA_BITS:
        raise Invalid(
            _("An RSA key needs at least %(bits)s bits. An ed25519 key is shorter and stronger.")
            % {"bits": MIN_RSA_BITS},
            field="line",
        )
    if kind.endswith("ed25519") and len(fields[1]) != 32:
        raise _wrong()
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return kind, f"{kind} {parts[1]}", f"SHA256:{digest}"


@transaction.atomic
def add(*, user: User, name: str, line: str) -> SshKey:
    """Store a public key; without a name it is called by its comment.

    Raises:
        Invalid: see `parse`; or the person has `MAX_KEYS` already.
        KeyTaken: the key is known here. The sentence does not say whose it is.
    """
    kind, public_key, fingerprint = parse(line)
    named = name.strip() or _comment(line) or kind
    if user.ssh_keys.count() >= MAX_KEYS:
        raise Invalid(_("At most %(most)s keys. Remove one first.") % {"most": MAX_KEYS}, field="line")
    try:
        with transaction.atomic():
            key = SshKey.objects.create(user=user, name=named, kind=kind, line=public_key, fingerprint=fingerprint)
    except IntegrityError as exc:
        raise KeyTaken(_("This key is already in use. Create another one.")) from exc
    audit.record(user, "key_added", user, name=key.name, fingerprint=fingerprint)
    return key


def _comment(line: str) -> str:
    """Return the comment of a key, by convention user and host: me@laptop."""
    parts = line.split(maxsplit=2)
    text = parts[2].strip() if len(parts) > 2 else ""
    return text[:MAX_NAME_LENGTH] if text.isprintable() else ""


@transaction.atomic
def remove(*, key: SshKey, by: User) -> None:
    """Delete a key; the next sign-in with it is refused."""
    audit.record(by, "key_removed", key.user, name=key.name, fingerprint=key.fingerprint)
    key.delete()


def authorized(username: str) -> list[str]:
    """Lines of an authorized_keys file for an active person; empty for anybody else."""
    person = User.objects.filter(username=username, is_active=True, must_change_password=False).first()
    if person is None:
        return []
    return [f"{key.line} {person.username}" for key in person.ssh_keys.all()]
