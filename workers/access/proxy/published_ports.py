"""Publish a port of a job, share it, withdraw it."""

from __future__ import annotations

import re
from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import sealed
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, NotFound, Refusals
from workers.access.proxy import addresses
from workers.access.proxy.models import NAME_PATTERN, PublishedPort
from workers.core.models import Job

PORTS = range(40_000, 50_000)
"""What people may publish. Servers of the machines and of the platform listen elsewhere."""
MAX_PORTS = 20
MAX_SOCKET_LENGTH = 100
MAX_PATH_LENGTH = 200
MAX_COOKIES, LONGEST_COOKIE = 50, 100


class TooManyPorts(DomainError, code="too_many_ports"): ...


class PortTaken(DomainError, code="port_taken", field="port"): ...


class PortsOff(DomainError, code="ports_off"): ...


class JobOver(DomainError, code="job_ended"): ...


class OfThePlatform(DomainError, code="port_of_the_platform"): ...


@transaction.atomic
def publish(job: Job, *, port: int, by: User, name: str = "") -> PublishedPort:
    """Let browsers reach a port of a job; at first those of its owner alone.

    Args:
        name: a word for it in addresses; empty: made of the number.

    Raises:
        Invalid, NameTaken, PortTaken, TooManyPorts, JobOver, PortsOff: see the sentences.
    """
    name = name or f"port-{port}"
    _check(job, port, name)
    row = PublishedPort.objects.create(job=job, name=name, port=port)
    audit.record(by, "port_published", job, port=port, name=name)
    return row


def _check(job: Job, port: int, name: str) -> None:
    refusals = Refusals()
    rows = PublishedPort.objects.filter(job=job)
    with refusals:
        if not addresses.are_ports_enabled():
            raise PortsOff(_("Ports are disabled on this platform. Ask an administrator."))
    with refusals:
        if job.is_final:
            raise JobOver(_("This job has ended; its ports are closed."))
    with refusals:
        if port not in PORTS:
            port_range = {"first": PORTS[0], "last": PORTS[-1]}
            raise Invalid(_("Enter a port from %(first)s to %(last)s.") % port_range, field="port")
        if rows.filter(port=port).exists():
            raise PortTaken(_("Port %(port)s is already published.") % {"port": port})
    with refusals:
        if not re.match(NAME_PATTERN, name):
            raise Invalid(_("A name can contain only lowercase letters, digits and -, at most 30."), field="name")
        if rows.filter(name=name).exists():
            raise NameTaken(_("Another port of this job already has this name."))
    with refusals:
        if rows.count() >= MAX_PORTS:
            raise TooManyPorts(
                _("A job can have at most %(most)s published ports. Unpublish one first.") % {"most": MAX_PORTS}
            )
    refusals.end()


@transaction.atomic
def provide(
    job: Job,
    *,
    name: str,
    port: int | None = None,
    socket: str = "",
    path: str = "",
    keeps_path: bool = False,
    secret: str = "",
) -> PublishedPort:
    """Publish what a kind of job brings along; again with the same name changes it. It cannot be withdrawn.

    Args:
        port: on the job's own loopback, or
        socket: path of a unix socket inside its sandbox.
        path: where opening leads, below the port.
        keeps_path: the server was told `addresses.base_path`; otherwise the path is taken off.
        secret: sent as `Authorization: token …` in the caller's place.
    """
    if (port is None) == (not socket) or len(socket) > MAX_SOCKET_LENGTH:
        raise ValueError("Give a port, or a socket of at most 100 characters.")
    values = {
        "port": port,
        "socket": socket,
        "path": path,
        "keeps_path": keeps_path,
        "secret": sealed.seal({"secret": secret} if secret else {}),
        "by_platform": True,
    }
    return PublishedPort.objects.update_or_create(job=job, name=name, defaults=values)[0]


def find(job: Job, name: str) -> PublishedPort:
    """Return a published port by its name.

    Raises:
        NotFound: the job has none of this name.
    """
    row = PublishedPort.objects.filter(job=job, name=name).select_related("job__owner").first()
    if row is None:
        raise NotFound(_("This job has no such port. It may have been unpublished."))
    return row


@transaction.atomic
def withdraw(row: PublishedPort, *, by: User) -> None:
    """Close a port again; who is in is sent out within seconds.

    Raises:
        OfThePlatform: it belongs to the kind of job.
    """
    if row.by_platform:
        raise OfThePlatform(_("This port is reserved for the job itself. Stop the job to close it."))
    audit.record(by, "port_withdrawn", row.job, port=row.port, name=row.name)
    row.delete()


def secret_of(row: PublishedPort) -> str:
    """What the server of a port asks for; "" for nothing, also after the platform's secret key changed."""
    try:
        return sealed.unseal(row.secret).get("secret", "")
    except sealed.Unsealable:
        return ""


@transaction.atomic
def remember_cookies(pk: int, names: Collection[str]) -> None:
    """Remember names of cookies that the server of a port set: only these go back to it where ports share an origin."""
    row = PublishedPort.objects.select_for_update().filter(pk=pk).first()
    if row is not None:
        new = [name for name in sorted(names) if name not in row.cookie_names and len(name) <= LONGEST_COOKIE]
        row.cookie_names = [*row.cookie_names, *new][:MAX_COOKIES]
        row.save(update_fields=["cookie_names"])
