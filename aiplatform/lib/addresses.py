"""Which network addresses are of the wide net. Standard library only: programs of jobs judge by the same lines."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Not one machine of the wide net, whatever this Python's own table says: the registries of special-purpose addresses
#: (IANA), also where they call a range reachable: those are relays and anycast services next to the caller.
_SPECIAL = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    )
]  # fmt: skip
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out; the rest is local, reserved or to many
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def leads_to(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to, mapped or by NAT64's well-known prefix; else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    hidden = address.ipv4_mapped
    if hidden is None and address in _NAT64:
        hidden = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return hidden or address


def is_public(address: Address) -> bool:
    """Whether an address is public and of a single machine. Tunnels (6to4, Teredo) are not: they end anywhere."""
    inner = leads_to(address)
    if inner.version == 6 and inner not in _UNICAST:
        return False
    return inner.is_global and not any(inner in network for network in _SPECIAL)


def is_allowed(host: str, address: Address, allowed: Iterable[str]) -> bool:
    """Whether an operator's exceptions, host names, addresses and networks, open an address."""
    for entry in allowed:
        if entry.lower() == host:
            return True
        with suppress(ValueError):
            if leads_to(address) in ipaddress.ip_network(entry, strict=False):
                return True
    return False
