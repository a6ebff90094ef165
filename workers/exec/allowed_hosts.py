"""Lists of hosts that an operator allows: whole names, and patterns with a *.

A whole name is the operator's word for that very host, wherever it lies. A pattern only narrows what is public anyway.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

NOBODY = "none"
_NAME = re.compile(r"(?=.*[a-z0-9])[a-z0-9._-]+")  # more than a name of DNS may hold, but nothing that means many


def is_host(name: str) -> bool:
    """Whether this is one host's name or address, in small letters. Resolvers take "*" and "" for this machine."""
    if _NAME.fullmatch(name):
        return True
    try:
        return ipaddress.ip_address(name).version == 6 and "%" not in name
    except ValueError:
        return False


class AllowedHosts:
    """What one setting allows.

    Args:
        entries: as in ["pypi.org", "*.pythonhosted.org"]; "*" is every host, "none" is none.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        asked = [entry.lower().rstrip(".") for entry in entries]
        self._whole = {entry for entry in asked if is_host(entry) and entry != NOBODY}
        self._patterns = [entry for entry in asked if not is_host(entry)]

    def allow(self, name: str) -> bool:
        """Whether a host may be asked."""
        return is_host(name) and (self.has_name(name) or any(fnmatchcase(name, pattern) for pattern in self._patterns))

    def has_name(self, name: str) -> bool:
        """Whether the whole name of a host is there: then it may have an inner address."""
        return name in self._whole
