"""Add container images: what people name is looked up, and what was found is noted."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib import wording
from aiplatform.lib.claims import Claims, is_gone
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers.core import clock, queues
from workers.core.models import Node
from workers.core.models.nodes import tier_label
from workers.images.containers import copies, registry_client
from workers.images.containers.reference import HUB, Reference, parse
from workers.images.models import Image, RegistryLogin, State, Visibility
from workers.images.store import engines
from workers.supervisor import sandbox

log = logging.getLogger(__name__)
#: Longer than any look takes: three answers of a registry, one of them of eight megabytes at the least rate.
CLAIMS = Claims(ttl=timedelta(minutes=10), epoch="tries", clock=clock.now, ends_with_process=True)


class NotHere(DomainError, code="image_not_here"): ...


class CannotLookUp(DomainError, code="cannot_look_up"):
    """An image that is no tag of a registry and exists on no node."""


def add(
    *, user: User, name: str, reference: str, source: str, tag: str = "", description: str = "",
    visibility: str = Visibility.PRIVATE, login: RegistryLogin | None = None, policy: str = Image.Policy.PINNED,
) -> Image:  # fmt: skip
    """Add a container image under a name of the person's own; it is looked up at once, and fetched when a job needs it.

    Raises:
        Invalid, NameTaken: see `check`.
    """
    check(user=user, name=name, tag=tag, reference=reference, source=source, login=login)
    try:
        with transaction.atomic():
            image = Image.objects.create(
                kind=Image.Kind.CONTAINER, owner=user, name=name, tag=tag, description=description,
                visibility=visibility, source=source, reference=str(parse(reference)), login=login,
                policy=policy, state=State.LOOKING,
            )  # fmt: skip
            audit.record(user, "image_added", image, reference=image.reference)
            _send(image)
    except IntegrityError:
        raise engines.taken(name, tag) from None
    return image


def check(
    *, user: User, name: str = "x", tag: str = "", reference: str = "x", source: str = Image.Source.HUB,
    login: RegistryLogin | None = None,
) -> None:  # fmt: skip
    """Refuse at once what `add` refuses.

    Raises:
        Invalid: a name that is none, a source that does not fit, credentials of another registry.
        NameTaken: another image of this person has the name and the tag.
    """
    refusals = Refusals()
    with refusals:
        engines.check_name(user=user, name=name, tag=tag)
    with refusals:
        if source not in Image.Source.values:
            raise Invalid(_("An image is already on the nodes, on Docker Hub, or in another registry."), field="source")
        _check_place(parse(reference), source)
    with refusals:
        _check_login(user, reference, source, login)
    with refusals:
        check_machines(field="source")
    refusals.end()


def _check_place(reference: Reference, source: str) -> None:
    on_hub = reference.host == HUB
    if source == Image.Source.HUB and not on_hub:
        raise Invalid(
            _("%(host)s is not Docker Hub. Choose another registry as the source.") % {"host": reference.host},
            field="source",
        )
    if source == Image.Source.REGISTRY and on_hub:
        raise Invalid(_("Start with the name of the registry: registry.example.org/lab/torch:2.1."), field="reference")


def _check_login(user: User, reference: str, source: str, login: RegistryLogin | None) -> None:
    if login is None:
        return
    if not RegistryLogin.objects.usable_by(user).filter(pk=login.pk).exists():
        raise Invalid(_("Credentials not found."), field="login")
    if source == Image.Source.LOCAL or parse(reference).host != login.host:
        raise Invalid(_("These credentials are for %(host)s.") % {"host": login.host}, field="login")


def check_machines(*, field: str) -> None:
    """Refuse container images where no machine runs them. While none has joined at all nothing is refused.

    Raises:
        Invalid: names the tier that each machine offers.
    """
    rows = list(Node.objects.exclude(state=Node.State.REMOVED).values_list("name", "sandbox_tier"))
    if not rows or any(tier >= sandbox.CONTAINER for _name, tier in rows):
        return
    offered = "; ".join(f"{name}: {tier}, {tier_label(tier)}" for name, tier in rows[:20])
    raise Invalid(
        _(
            "Container images need a node with isolation tier 4, and none exists (%(offered)s). Choose another "
            "image, or ask an operator for docker or podman."
        )
        % {"offered": offered},
        field=field,
    )


def can_look(image: Image) -> bool:
    """Whether it can be looked up again; what was saved of a job is what it is."""
    return image.kind == Image.Kind.CONTAINER and not image.is_saved and image.status != State.LOOKING


def look_up_again(image: Image) -> None:
    """Look an image up once more: its tag may name another one now, or what failed may work.

    Raises:
        CannotLookUp: it was saved of a job, or is no container image.
    """
    if image.kind != Image.Kind.CONTAINER or image.is_saved:
        raise CannotLookUp(
            _(
                "Only external container images can be refreshed. Start a job with this image as it is, or "
                "build it again."
            )
        )
    rows = Image.objects.filter(pk=image.pk, kind=Image.Kind.CONTAINER).exclude(state=State.LOOKING)
    if rows.update(state=State.LOOKING, message=wording.Message()):
        _send(image)


def _send(image: Image) -> None:
    """Send the look-up to a node that can do it: one with containers for local images, otherwise this one."""
    node = settings.NODE
    if image.source == Image.Source.LOCAL:
        able = Node.objects.filter(sandbox_tier__gte=sandbox.CONTAINER, state=Node.State.LIVE)
        node = able.values_list("name", flat=True).first() or node
    enqueue("images.look", queue=queues.work(node), image_id=image.pk)


def run(image_id: int) -> None:
    """Look one image up and save the result; one that another process looks up is skipped. Safe to send twice."""
    rows = Image.objects.filter(pk=image_id, kind=Image.Kind.CONTAINER, state=State.LOOKING)
    claim = CLAIMS.acquire(rows)
    image = rows.select_related("login").first() if claim else None
    if claim is None or image is None:
        return
    try:
        columns = _local(image) if image.source == Image.Source.LOCAL else _remote(image)
    except Exception as exc:
        ours = isinstance(exc, DomainError)
        log.info("image=%s not found: %s", image_id, exc, exc_info=not ours)
        message = wording.of_error(exc) if ours else wording.message("image.look_failed", error=str(exc))
        claim.release(state=State.FAILED, message=message)
        return
    claim.release(state=State.READY, message=wording.Message(), **columns)


def _remote(image: Image) -> dict[str, object]:
    current = registry_client.look_up(image)
    return {"digest": current.digest, "size_bytes": current.manifest.bytes, "facts": current.facts}


def _local(image: Image) -> dict[str, object]:
    own = copies.engine()
    try:
        details = own.image(image.reference) if own else None
    except OSError:
        details = None
    if details is None:
        raise NotHere(wording.message("image.not_on_machine", name=image.reference, node=settings.NODE))
    facts = {
        "os": details.get("Os", ""),
        "architecture": details.get("Architecture", ""),
        "created": details.get("Created", ""),
    }
    return {
        "digest": str(details["Id"]),
        "size_bytes": int(details.get("Size") or 0),
        "facts": {name: str(value)[:40] for name, value in facts.items() if value},
    }


def resend() -> None:
    """Send again look-ups that no process works on, because a message was lost."""
    for image in Image.objects.filter(kind=Image.Kind.CONTAINER, state=State.LOOKING)[:50]:
        if CLAIMS.is_free(image) or is_gone(image.holder):
            _send(image)
