"""Lists of hosts that an operator allows: whole names, and patterns with a *, each perhaps with a port.

A whole name is the operator's word for that very host, wherever it lies. A pattern only narrows what is public anyway.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

NOBODY = "none"
_NAME = re.compile(r"(?=.*[a-z0-9])[a-z0-9._-]+")  # more than a name of DNS may hold, but nothing that means many
_ENTRY = re.compile(r"(?P<host>[^:]*|\[[0-9a-f:.]+\]):(?P<port>[0-9]+)")


def is_host(name: str) -> bool:
    """Whether this is one host's name or address, in small letters. Resolvers take "*" and "" for this machine."""
    return bool(_NAME.fullmatch(name)) or _is_ipv6(name)


class AllowedHosts:
    """What one setting allows.

    Args:
        entries: as in ["pypi.org", "*.pythonhosted.org", "git.example.org:443", "[fd00::5]:22"]; "*" is every host,
            "none" is none.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        pairs = [_split_entry(entry.lower()) for entry in entries if entry.lower() != NOBODY]
        self._whole = {entry for entry in pairs if is_host(entry[0])}
        self._patterns = [entry for entry in pairs if entry not in self._whole]

    def allow(self, name: str, port: int) -> bool:
        """Whether a job may connect to a host."""
        return is_host(name) and (
            self.has_name(name, port)
            or any(fnmatchcase(name, pattern) and only in (0, port) for pattern, only in self._patterns)
        )

    def has_name(self, name: str, port: int) -> bool:
        """Whether the whole name of a host is there: then it may have an inner address."""
        return not self._whole.isdisjoint({(name, 0), (name, port)})


def _split_entry(entry: str) -> tuple[str, int]:
    """Name or pattern, and the port; 0 means every port."""
    match = _ENTRY.fullmatch(entry)
    host, port = (match["host"], int(match["port"])) if match else (entry, 0)
    bare = host.removeprefix("[").removesuffix("]")
    return (bare if _is_ipv6(bare) else host.rstrip(".")), port


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6 and "%" not in text
    except ValueError:
        return False
