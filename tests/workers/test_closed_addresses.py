"""Addresses of the internet that are closed to jobs: the platform's own machines, networks that an operator names."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from aiplatform import env
from aiplatform.lib import env_texts
from tests.cases import case_table
from workers.core.models import Node
from workers.execution.exec import closed_addresses
from workers.execution.exec.closed_addresses import ClosedAddresses, NotKnown

pytestmark = pytest.mark.django_db  # the thread that asks the rows looks after its connections, old ones too


def test_machines_are_those_of_the_rows_and_the_interfaces_of_this_one(monkeypatch):
    cards = [
        (socket.AF_INET, "198.51.100.4"),
        (socket.AF_INET6, "fe80::1%eth0"),
        (socket.AF_PACKET, "02:fc:00:00:00:01"),
    ]
    cards = [SimpleNamespace(family=family, address=address) for family, address in cards]
    monkeypatch.setattr(closed_addresses.psutil, "net_if_addrs", lambda: {"eth0": cards})

    def resolve(name, *_, **__):
        if name == "lost.inner":
            raise OSError("not found")
        return [(0, 0, 0, "", ({"gpu-02.inner": "::ffff:198.51.100.7"}.get(name, name), 0))]

    monkeypatch.setattr(closed_addresses.socket, "getaddrinfo", resolve)
    for number, address in enumerate(("198.51.100.5", "gpu-02.inner", "lost.inner")):
        Node.objects.create(name=f"gpu-{number}", address=address)
    Node.objects.create(name="gone", address="198.51.100.6", state=Node.State.REMOVED)

    found = closed_addresses.machines() - {ip_address("127.0.0.1")}

    assert found == {ip_address(text) for text in ("198.51.100.4", "198.51.100.5", "198.51.100.7", "fe80::1")}


@case_table(
    ("address", "port", "base", "held"),
    [
        ("198.51.100.7", 443, "", True),
        ("198.51.100.7", 443, "https://ai.example.org", False),
        ("198.51.100.7", 5432, "https://ai.example.org", True),
        ("198.51.100.7", 8000, "http://ai.example.org:8000", False),
        ("::ffff:198.51.100.7", 5432, "", True),
        ("64:ff9b::198.51.100.7", 5432, "", True),
        ("198.51.100.8", 5432, "", False),
        ("203.0.113.9", 443, "https://ai.example.org", True),
        ("64:ff9b::203.0.113.9", 443, "", True),
        ("2001:db8::1", 443, "", True),
    ],
)
def test_machine_is_closed_but_for_the_pages_and_a_network_wholly(address, port, base, held, monkeypatch):
    monkeypatch.setattr(env, "BASE_URL", base)
    monkeypatch.setattr(closed_addresses, "machines", lambda: {ip_address("198.51.100.7")})

    assert asyncio.run(ClosedAddresses(["203.0.113.0/24", "2001:db8::/32"]).hold(address, port)) is held


def test_machines_that_were_known_stay_so_while_the_database_is_away(monkeypatch):
    monkeypatch.setattr(closed_addresses, "MAX_AGE_S", 0.0)
    answers = [OperationalError("away"), {ip_address("198.51.100.7")}, OperationalError("away")]

    def machines():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(closed_addresses, "machines", machines)

    async def ask():
        closed = ClosedAddresses([])
        with pytest.raises(NotKnown):
            await closed.hold("198.51.100.7", 22)
        return [await closed.hold("198.51.100.7", 22) for _ in range(2)]

    assert asyncio.run(ask()) == [True, True]
    assert answers == []


def test_networks_are_read_as_networks():
    assert env_texts.networks("203.0.113.9/24, 2001:db8::/32,198.51.100.1") == [
        "203.0.113.0/24", "2001:db8::/32", "198.51.100.1/32",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="write networks"):
        env_texts.networks("example.org")
