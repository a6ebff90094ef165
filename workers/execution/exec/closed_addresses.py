"""Addresses of the internet that are closed to jobs all the same: those of the platform's own machines, and networks
that an operator names.

Where machines have addresses that the internet may reach, such as on a campus, "public" says nothing of who they are.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import psutil
from channels.db import database_sync_to_async
from django.db import Error

from aiplatform import env
from aiplatform.lib.addresses import Address, leads_to
from workers.core.models import Node

log = logging.getLogger(__name__)

MAX_AGE_S = 60.0


class NotKnown(Exception):
    """The addresses of nodes are not known: the database does not answer and none were read before."""


class ClosedAddresses:
    """Addresses that jobs may not reach, read again at most once a minute.

    Args:
        networks: further ones, as in ["203.0.113.0/24"].
    """

    def __init__(self, networks: Sequence[str]) -> None:
        self.networks = [ipaddress.ip_network(text, strict=False) for text in networks]
        self._machines: set[Address] | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    async def hold(self, address: str, port: int) -> bool:
        """Whether a job may not connect there. The platform's own pages are open to all, so to jobs as well.

        Raises:
            NotKnown: nobody can tell now.
        """
        target = leads_to(ipaddress.ip_address(address.partition("%")[0]))
        if any(target in network for network in self.networks):
            return True
        return port != _published_port() and target in await self._node_addresses()

    async def _node_addresses(self) -> set[Address]:
        async with self._reading:
            if self._machines is None or time.monotonic() - self._read_at > MAX_AGE_S:
                try:
                    self._machines = await database_sync_to_async(machines)()
                except Error as exc:
                    log.warning("addresses of machines not read: %s", exc)
                    if self._machines is None:
                        raise NotKnown from exc
                self._read_at = time.monotonic()
            return self._machines


def machines() -> set[Address]:
    """Return the addresses of this node's interfaces and of all nodes of the platform.

    Raises:
        Error: the database does not answer.
    """
    rows = Node.objects.exclude(state=Node.State.REMOVED).values_list("address", flat=True)
    own = [entry for card in psutil.net_if_addrs().values() for entry in card]
    addresses = {str(entry.address) for entry in own if entry.family in (socket.AF_INET, socket.AF_INET6)}
    for address in rows:
        with suppress(OSError, UnicodeError):  # a name that is not known now
            addresses |= {str(row[4][0]) for row in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)}
    return {leads_to(ipaddress.ip_address(text.partition("%")[0])) for text in addresses}


def _published_port() -> int:
    """The port of the platform's own pages, where people type an address of it; 0: there is none."""
    parts = urlsplit(env.BASE_URL)
    return parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
