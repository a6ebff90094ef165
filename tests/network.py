"""Which sockets a test may use: none, but with `@pytest.mark.sockets("why")` this machine's; another host's never.

Python tells every `connect`, `bind`, `sendto` and look-up of a name to audit hooks, whichever library makes it. What is
refused looks to the code under test like a network that is not there, and fails the test at its end.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from typing import Any

import pytest

#: Tests of whole platforms, browsers and PostgreSQL talk to processes of this machine.
ON_THIS_MACHINE = ("sockets", "browser", "journey", "chaos", "gpu", "proof", "postgres")
CALLS = {"socket.connect": 1, "socket.bind": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}
NAMED = {"socket.getaddrinfo", "socket.gethostbyname"}
NAMES = {"localhost", "localhost.localdomain", ""}

_state: dict[str, Any] = {"watching": False, "local": False, "refused": []}


class Refused(ConnectionRefusedError):
    """What a test meets that reaches for a network it may not use."""


def _told(event: str, arguments: tuple[Any, ...]) -> None:
    if not _state["watching"] or (place := CALLS.get(event)) is None:
        return
    address = arguments[place]
    if event in NAMED and is_number(address):
        return  # nobody is asked
    if not (_state["local"] and is_here(address)):
        _state["refused"].append(f"{event.removeprefix('socket.')} {address!r}")
        raise Refused(f"a test reached for {address!r}")


def is_number(host: Any) -> bool:
    """Whether a host is written as a number, so that a look-up reaches for nothing; also "127.1" and "0x7f.1"."""
    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    if not isinstance(host, str):
        return True
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            socket.inet_aton(host)
        except OSError:
            return False
    return True


def is_here(address: Any) -> bool:
    """Whether an address of a socket, or a name to look up, is this machine's own."""
    if isinstance(address, tuple):
        address = address[0] if address else ""
    if address is None:
        return True
    if isinstance(address, bytes):
        address = address.decode(errors="replace")
    if not isinstance(address, str):
        return True  # a family of sockets that reaches no other host
    if address in NAMES or address.startswith(("/", "\0")) or address == os.uname().nodename:
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def begin(item: pytest.Item) -> None:
    """Watch from here on what `item` reaches for."""
    local = any(item.get_closest_marker(mark) for mark in ON_THIS_MACHINE)
    _state.update(watching=True, local=local, refused=[])


def end() -> list[str]:
    """Stop watching; what was refused meanwhile."""
    _state["watching"] = False
    return list(_state["refused"])


sys.addaudithook(_told)
