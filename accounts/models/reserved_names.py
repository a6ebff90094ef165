"""Reserved usernames: words that become folders, addresses or options."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

#: Accounts of machines, and words that would let a person pass for the platform.
RESERVED = frozenset(
    {
        *("root", "daemon", "bin", "sys", "nobody", "sshd", "systemd", "postgres", "redis", "valkey", "www-data"),
        *("api", "static", "login", "logout", "register", "public", "anonymous", "everyone", "me", "none", "null"),
        *("system", "platform", "aiplatform", "support", "security", "con", "nul", "prn", "aux"),
    }
)


def check_username(name: str) -> None:
    """Refuse a name that is a path in disguise, an option of a command, or one of the platform's own words.

    Raises:
        ValidationError: with the rule that was broken.
    """
    if name.startswith((".", "-")) or name.endswith(".") or ".." in name:
        raise ValidationError(
            _("A name starts with a letter or digit, does not end with a dot and has no consecutive dots.")
        )
    if name.lower() in RESERVED:
        raise ValidationError(_("“%(name)s” is a reserved name. Choose another one.") % {"name": name})
