"""Which addresses count as public: one row per range of the registries of special-purpose addresses."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from aiplatform.lib import outbound

#: First and last address of each range of the IANA registries, IPv4 and IPv6, and of what goes beside them.
SPECIAL = {
    "this network": ("0.0.0.0", "0.255.255.255"),
    "private, 10": ("10.0.0.0", "10.255.255.255"),
    "shared by a provider": ("100.64.0.0", "100.127.255.255"),
    "loopback": ("127.0.0.0", "127.255.255.255"),
    "link-local": ("169.254.0.0", "169.254.255.255"),
    "private, 172": ("172.16.0.0", "172.31.255.255"),
    "protocol assignments": ("192.0.0.0", "192.0.0.255"),
    "port control, TURN": ("192.0.0.9", "192.0.0.10"),
    "documentation 1": ("192.0.2.0", "192.0.2.255"),
    "AS112, IPv4": ("192.31.196.0", "192.31.196.255"),
    "AMT": ("192.52.193.0", "192.52.193.255"),
    "relays of 6to4": ("192.88.99.0", "192.88.99.255"),
    "private, 192": ("192.168.0.0", "192.168.255.255"),
    "AS112, delegated": ("192.175.48.0", "192.175.48.255"),
    "benchmarks": ("198.18.0.0", "198.19.255.255"),
    "documentation 2": ("198.51.100.0", "198.51.100.255"),
    "documentation 3": ("203.0.113.0", "203.0.113.255"),
    "multicast, IPv4": ("224.0.0.0", "239.255.255.255"),
    "reserved": ("240.0.0.0", "255.255.255.254"),
    "broadcast": ("255.255.255.255", "255.255.255.255"),
    "unspecified": ("::", "::"),
    "loopback, IPv6": ("::1", "::1"),
    "compatible with IPv4": ("::2", "::8.8.8.8"),
    "mapped, private": ("::ffff:10.0.0.0", "::ffff:10.255.255.255"),
    "translated": ("::ffff:0:0:0", "::ffff:0:808:808"),
    "NAT64, loopback": ("64:ff9b::127.0.0.0", "64:ff9b::127.255.255.255"),
    "NAT64, local": ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:808:808"),
    "discard": ("100::", "100::ffff:ffff:ffff:ffff"),
    "dummy": ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"),
    "Teredo": ("2001::", "2001:0:808:808::f7f7:f7f7"),
    "Teredo to here": ("2001:0:808:808::80ff:fffe", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
    "protocol anycast": ("2001:1::1", "2001:1::3"),
    "benchmarks, IPv6": ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
    "AMT, IPv6": ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"),
    "AS112, IPv6": ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"),
    "ORCHID": ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
    "ORCHIDv2": ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"),
    "drones": ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"),
    "documentation, IPv6": ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    "6to4": ("2002::", "2002:808:808::1"),
    "6to4 to here": ("2002:7f00:1::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "AS112, direct": ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
    "documentation, large": ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "not given out": ("4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "segment routing": ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "unique local": ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "link-local, IPv6": ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "site-local": ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    "multicast, IPv6": ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
}
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1", "2606:4700:4700::1111",
    "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
]  # fmt: skip
#: Other ways to write an address of this machine or its network.
SPELLINGS = [
    "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "0", "0x0a000001",
    "012.0.0.1", "10.1", "169.16689662", "0xa9fea9fe", "3232235521", "[::127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]", "[fe80::1%25lo]", "[fe80::1%lo]", "[fe80::1%251]", "[::1%25lo]",
    "[fec0::1]", "[64:ff9b::a00:1]",
]  # fmt: skip


@pytest.mark.parametrize("kind", SPECIAL)
def test_outbound_special_range_is_not_public(kind):
    first, last = (ip_address(text) for text in SPECIAL[kind])
    middle = type(first)((int(first) + int(last)) // 2)

    assert [str(each) for each in (first, middle, last) if outbound.is_public(each)] == []


@pytest.mark.parametrize("text", PUBLIC)
def test_outbound_address_beside_the_special_ranges_is_public(text):
    assert outbound.is_public(ip_address(text))


@pytest.mark.parametrize("host", SPELLINGS)
def test_outbound_address_is_judged_however_it_is_written(host):
    with pytest.raises(outbound.ForbiddenAddress):
        outbound.resolve(f"http://{host}/")


def test_outbound_operator_may_allow_an_address_behind_another_spelling():
    target = outbound.resolve("http://[::ffff:10.1.2.3]/x", allowed=["10.1.0.0/16"])

    assert ip_address(target.address) == ip_address("::ffff:10.1.2.3")
