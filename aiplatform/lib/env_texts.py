"""How the texts of AIP_* variables are read; each refuses with a ValueError that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def truth(text: str) -> bool:
    if text.strip().lower() in _TRUE:
        return True
    if text.strip().lower() in _FALSE:
        return False
    raise ValueError("write 1 or 0")


def several(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def networks(text: str) -> list[str]:
    try:
        return [str(ip_network(part, strict=False)) for part in several(text)]
    except ValueError:
        raise ValueError("write networks, as in 203.0.113.0/24,2001:db8::/32") from None


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() in choices:
            return text.strip().lower()
        raise ValueError(f"write {', '.join(choices)}")

    return parse


def some_of(*choices: str) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        if set(several(text)) <= set(choices):
            return several(text)
        raise ValueError(f"write some of {', '.join(choices)}")

    return parse


def program(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        path = Path(text.strip())
        if path.is_absolute() and path.name in names:
            return str(path)
        raise ValueError(f"write the whole path of a {' or '.join(names)}")

    return parse


def ports(text: str) -> range:
    first, dash, last = text.partition("-")
    allowed = range(int(first), int(last) + 1) if dash else range(0)
    if not allowed or allowed[0] < 1024 or allowed[-1] > 65535:
        raise ValueError("write the first and the last port between 1024 and 65535, as in 20000-29999")
    return allowed


def wildcard(text: str) -> str:
    """Check the name below which ports of jobs have names of their own: jobs.example.org, https://jobs.example.org."""
    parts = urlsplit(text.lower() if "://" in text else f"//{text.lower()}")
    name = (parts.hostname or "").removeprefix("*.")
    if parts.scheme not in {"", "http", "https"} or parts.path.strip("/") or parts.query or not name:
        raise ValueError("write a name like jobs.example.org or https://jobs.example.org")
    if not all(part and part.replace("-", "").isalnum() for part in name.split(".")):
        raise ValueError("write a name, not an address")
    port = f":{parts.port}" if parts.port else ""
    return (f"{parts.scheme}://" if parts.scheme else "") + name + port


def issuer(text: str) -> str:
    """Check an issuer's address: https, or plain http on this machine."""
    parts = urlsplit(text)
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError("write an address like https://login.example.org/realms/lab")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}):
        raise ValueError("begin with https://")
    return text


def directory(text: str) -> str:
    if not text.startswith(("ldap://", "ldaps://")) or not urlsplit(text).hostname:
        raise ValueError("write an address like ldaps://directory.example.org")
    return text


def search(text: str) -> str:
    if "{username}" not in text or not (text.startswith("(") and text.endswith(")")):
        raise ValueError("write a filter like (uid={username})")
    return text


def pairs(text: str) -> dict[str, str]:
    """Parse "theirs=Ours;more=Others": the last = divides, as directory names contain some themselves."""
    mapping = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        theirs, divided, ours = part.rpartition("=")
        if not (divided and theirs.strip() and ours.strip()):
            raise ValueError(f"{part!r} is no pair")
        mapping[theirs.strip()] = ours.strip()
    return mapping
