"""Lifecycle of machines: one-time tokens, joining, draining, removing."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import inner_port, wording
from aiplatform.lib import installation_secrets as kept
from aiplatform.lib.errors import DomainError, Invalid, NameTaken, StillInUse
from aiplatform.lib.wording import Message
from workers.core import scheduler_wakeup
from workers.core.models import Attempt, Device, JoinToken, Node, NodeEvent

PREFIX = "join_"
LIFETIME = timedelta(hours=24)
PROBES = ".join"  # beneath AIP_DATA_ROOT
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_PROBE = re.compile(r"[0-9a-f]{32}\Z")
_LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})


class JoinTokenInvalid(DomainError, code="join_token_invalid", status=403): ...


class OneMachineOnly(DomainError, code="one_machine_only"):
    """Database or broker cannot be reached from another machine."""


class DataRootDiffers(DomainError, code="data_root_differs"): ...


@dataclass(frozen=True)
class Welcome:
    """What a machine needs to be a node."""

    node: Node
    variables: dict[str, str]


def make_token(*, by: User | None = None, lifetime: timedelta = LIFETIME) -> tuple[JoinToken, str]:
    """A token with which one machine may join, once; the second value is the secret, shown once.

    Raises:
        OneMachineOnly: what a node would need is out of other machines' reach.
    """
    addresses()
    secret = PREFIX + secrets.token_urlsafe(32)
    row = JoinToken.objects.create(digest=_digest(secret), prefix=secret[:10], made_by=by, expires_at=now() + lifetime)
    audit.record(by, "node_token_made", row)
    return row, secret


def join_command(secret: str, address: str) -> str:
    """What to type on the further machine; `address` is the platform's, as machines reach it."""
    server = address.rstrip("/") or f"http://{env.NODE_ADDRESS or env.NODE}:{env.PORT}"
    return f"python3 manage.py join --server {server} --token {secret} --data-root {settings.DATA_ROOT}"


@transaction.atomic
def revoke(token: JoinToken, *, by: User | None = None) -> None:
    """Make an unused token worthless."""
    audit.record(by, "token_revoked", token)
    token.delete()


def addresses() -> tuple[str, str]:
    """(database, broker) as URLs that other machines can reach.

    Raises:
        OneMachineOnly: with the sentence that says which variable to set.
    """
    database, broker = env.NODE_DATABASE_URL or env.DATABASE_URL, env.NODE_REDIS_URL or env.REDIS_URL
    if not database.startswith(("postgres://", "postgresql://")):
        raise OneMachineOnly(
            _(
                "Multiple nodes require PostgreSQL: set AIP_DATABASE_URL to a server that all nodes can reach. "
                "SQLite supports one node."
            )
        )
    if not broker.startswith(("redis://", "rediss://")):
        raise OneMachineOnly(
            _("Multiple nodes require a broker over TCP: set AIP_REDIS_URL to a server that all nodes can reach.")
        )
    for name, url in (("AIP_NODE_DATABASE_URL", database), ("AIP_NODE_REDIS_URL", broker)):
        if (urlsplit(url).hostname or "") in _LOCAL:
            raise OneMachineOnly(
                _("Other nodes cannot reach %(host)s: set %(name)s to an address that they can reach.")
                % {"host": urlsplit(url).hostname or _("a socket"), "name": name}
            )
    return database, broker


def join(*, secret: str, name: str, machine: str, address: str, probe: str, content: str) -> Welcome:
    """Let a machine in and say what it needs. The token is used up only when everything is right.

    Args:
        machine: the machine's own random id; the same machine may come back under its name.
        address: where other machines reach it.
        probe: name of a file that the machine wrote beneath AIP_DATA_ROOT, with `content` in it.

    Raises:
        JoinTokenInvalid, NameTaken, OneMachineOnly, DataRootDiffers, Invalid.
    """
    token = JoinToken.objects.filter(digest=_digest(secret), used_at=None, expires_at__gt=now()).first()
    if token is None:
        raise JoinTokenInvalid(_("This token is unknown, used or expired. Create a new one on the page Nodes."))
    if not NAME.match(name):
        raise Invalid(_("A node name can contain letters, digits, dots and dashes, at most 63."), field="name")
    database, broker = addresses()
    _prove_shared(probe, content)
    with transaction.atomic():
        if not JoinToken.objects.filter(pk=token.pk, used_at=None).update(used_at=now()):
            raise JoinTokenInvalid(_("This token is unknown, used or expired. Create a new one on the page Nodes."))
        node = claim(name, machine, rejoin=True)
        # no work before its agent is heard: it has yet to check itself and start
        silent = now() - timedelta(seconds=env.NODE_SUSPECT_S)
        Node.objects.filter(pk=node.pk).update(address=address, heartbeat_at=silent, state=Node.State.SUSPECT)
        JoinToken.objects.filter(pk=token.pk).update(node=node)
        record(node, "joined", wording.message("node.joined", address=address), by=token.made_by)
        audit.record(token.made_by, "node_joined", node, address=address)
    variables = {
        "AIP_NODE": node.name,
        "AIP_NODE_ADDRESS": address,
        "AIP_DATABASE_URL": database,
        "AIP_REDIS_URL": broker,
        "AIP_TIME_ZONE": env.TIME_ZONE,
        "AIP_LANGUAGE": env.LANGUAGE,
        "AIP_EXEC_PORT": str(env.EXEC_PORT),
        "AIP_EGRESS_ALLOWED": ",".join(env.EGRESS_ALLOWED),
        "AIP_EGRESS_REFUSED": ",".join(env.EGRESS_REFUSED),
        "AIP_BASE_URL": env.BASE_URL,
    }
    return Welcome(node, variables)


def probe(*, name: str, machine: str, probe: str, content: str) -> None:
    """Answer a node that checks whether its data root is ours.

    Raises:
        JoinTokenInvalid: no machine of this name and id belongs to the cluster.
        DataRootDiffers: the file is not here.
    """
    rows = Node.objects.filter(name__iexact=name, machine=machine).exclude(machine="")
    if not rows.exclude(state=Node.State.REMOVED).exists():
        raise JoinTokenInvalid(_("No node with this name has joined. Create a token on the page Nodes."))
    _prove_shared(probe, content)


def reaches(name: str) -> bool:
    """Whether this node can connect to its own exec port; called by the node itself."""
    node = Node.objects.filter(name__iexact=name).first()
    return node is not None and inner_port.answers(node.address, env.EXEC_PORT)


def claim(name: str, machine: str, *, rejoin: bool) -> Node:
    """The row of this name for this machine, made where there is none.

    Args:
        rejoin: whether a removed machine comes back by this.

    Raises:
        NameTaken: the name belongs to another machine.
        Removed: an operator removed the machine.
    """
    row = Node.objects.filter(name__iexact=name).first()
    if row is None:
        return Node.objects.create(name=name, machine=machine, state=Node.State.SUSPECT)
    gone = row.state == Node.State.REMOVED
    if row.machine and machine and row.machine != machine and not gone:
        raise NameTaken(
            _("Another node is named %(name)s. Use another name, or remove the other node first.") % {"name": row.name}
        )
    if gone:
        if not rejoin:
            raise Removed(_("%(name)s was removed from the cluster. Join it again with a new token.") % {"name": name})
        Node.objects.filter(pk=row.pk).update(state=Node.State.SUSPECT, drain=False)
    if machine and row.machine != machine:
        Node.objects.filter(pk=row.pk).update(machine=machine)
    row.refresh_from_db()
    return row


class Removed(DomainError, code="node_removed"):
    """The machine may not work any more."""


@transaction.atomic
def drain(node: Node, *, by: User | None = None) -> Node:
    """Start nothing new on a machine; what runs goes on.

    Raises:
        Removed: it is no part of the cluster.
    """
    _present(node)
    if Node.objects.filter(pk=node.pk, drain=False).update(drain=True):
        Node.objects.filter(pk=node.pk, state=Node.State.LIVE).update(state=Node.State.DRAINING)
        record(node, "drained", wording.message("node.drained"), by=by)
        audit.record(by, "node_drained", node)
    node.refresh_from_db()
    return node


@transaction.atomic
def undrain(node: Node, *, by: User | None = None) -> Node:
    """Let a machine take work again.

    Raises:
        Removed: it is no part of the cluster.
    """
    _present(node)
    if Node.objects.filter(pk=node.pk, drain=True).update(drain=False):
        Node.objects.filter(pk=node.pk, state=Node.State.DRAINING).update(state=Node.State.LIVE)
        record(node, "undrained", wording.message("node.undrained"), by=by)
        audit.record(by, "node_undrained", node)
        scheduler_wakeup.notify()
    node.refresh_from_db()
    return node


@transaction.atomic
def remove(node: Node, *, by: User | None = None) -> Node:
    """Take a machine out of the cluster; its agent ends by itself. Its row stays, since jobs point to it.

    Raises:
        StillInUse: work runs on it; the sentence names it.
    """
    _present(node)
    Node.objects.filter(pk=node.pk).update(drain=True, state=Node.State.REMOVED)  # before looking: nothing comes after
    cards = Device.objects.filter(node=node)
    cards.update(health=Device.Health.GONE, health_message=Message())  # waits for who places now
    running = work_on(node)
    if running:
        named = ", ".join(f"{attempt.job}" for attempt in running[:3])
        more = len(running) - 3
        if more > 0:
            named = _("%(jobs)s and %(more)s more") % {"jobs": named, "more": more}
        raise StillInUse(
            _("%(node)s still runs %(jobs)s. Drain it and wait, or stop the jobs first.")
            % {"node": node.name, "jobs": named},
            jobs=[attempt.job_id for attempt in running],
        )
    record(node, "removed", wording.message("node.removed"), by=by)
    audit.record(by, "node_removed", node)
    node.refresh_from_db()
    return node


def work_on(node: Node) -> Sequence[Attempt]:
    """Attempts that hold devices of a machine now, oldest first."""
    held = Q(allocations__node=node, allocations__released_at=None)
    return list(Attempt.objects.filter(held, ended_at=None).distinct().select_related("job").order_by("pk"))


def record(
    node: Node, event: str, message: Message, *, by: User | None = None, device: Device | None = None
) -> NodeEvent:
    """Add a line to a machine's event log."""
    return NodeEvent.objects.create(node=node, device=device, event=event, message=message, by=by)


def machine_id() -> str:
    """The random id that this node created for itself, stored with its other secrets."""
    return hashlib.sha256(kept.load_or_create(Path(settings.RUN_DIR) / "machine_id").encode()).hexdigest()


def _present(node: Node) -> None:
    if node.state == Node.State.REMOVED:
        raise Removed(_("%(name)s was removed from the cluster. Join it again with a new token.") % {"name": node.name})


def _prove_shared(probe: str, content: str) -> None:
    """Refuse unless the node's file is in our data root too; write an answer next to it.

    Raises:
        DataRootDiffers: it does not, or says something else.
    """
    root = Path(settings.DATA_ROOT)
    path = root / PROBES / probe
    if not _PROBE.match(probe) or not content:
        raise Invalid(_("The probe file has an unexpected name."), field="probe")
    if not hmac.compare_digest(_beginning(path), content.encode()):
        raise DataRootDiffers(
            _(
                "The file written by the node is not in %(root)s on this server: AIP_DATA_ROOT must be the "
                "same shared folder."
            )
            % {"root": root}
        )
    part = path.with_suffix(f".{secrets.token_hex(8)}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as answer:
        answer.write(_digest(content))
    part.replace(path.with_suffix(".answer"))  # whatever lay there: a link is replaced, not followed


def _beginning(path: Path) -> bytes:
    """The first 4 KiB of a plain file, nothing of anything else: jobs may be able to write in that folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(4096) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""


def _digest(secret: str) -> str:
    """sha256 in hex; the secret has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(secret.encode()).hexdigest()
