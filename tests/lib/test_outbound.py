"""Which addresses count as public: one row per range of the registries of special-purpose addresses."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from aiplatform.lib import addresses, outbound
from tests.cases import case_table
from tests.special_addresses import PUBLIC, SPECIAL

#: Other ways to write an address of this machine or its network.
SPELLINGS = [
    "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "0", "0x0a000001",
    "012.0.0.1", "10.1", "169.16689662", "0xa9fea9fe", "3232235521", "[::127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]", "[fe80::1%25lo]", "[fe80::1%lo]", "[fe80::1%251]", "[::1%25lo]",
    "[fec0::1]", "[64:ff9b::a00:1]",
]  # fmt: skip


@case_table("kind", SPECIAL)
def test_outbound_special_range_is_not_public(kind):
    first, last = (ip_address(text) for text in SPECIAL[kind])
    middle = type(first)((int(first) + int(last)) // 2)

    assert [str(each) for each in (first, middle, last) if addresses.is_public(each)] == []


@case_table("text", PUBLIC)
def test_outbound_address_beside_the_special_ranges_is_public(text):
    assert addresses.is_public(ip_address(text))


@case_table("host", SPELLINGS)
def test_outbound_address_is_judged_however_it_is_written(host):
    with pytest.raises(outbound.ForbiddenAddress):
        outbound.resolve(f"http://{host}/")


def test_outbound_operator_may_allow_an_address_behind_another_spelling():
    target = outbound.resolve("http://[::ffff:10.1.2.3]/x", allowed=["10.1.0.0/16"])

    assert ip_address(target.address) == ip_address("::ffff:10.1.2.3")
