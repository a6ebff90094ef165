"""Asking the registry of an image: with its credentials, among the registries that the operator allows."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings

from aiplatform import env
from aiplatform.lib import sealed, wording
from workers.images.containers import manifests
from workers.images.containers.manifests import Manifest
from workers.images.containers.patience import Pace
from workers.images.containers.reference import HUB, HUB_SERVER, Reference, parse
from workers.images.containers.registry import Login, Registry, RegistryRefused, refused
from workers.images.models import Image, RegistryLogin

MAX_CONFIG_BYTES = 8 << 20
CONFIG_S = 60.0


@dataclass(frozen=True)
class Found:
    """What a reference names now."""

    digest: str
    manifest: Manifest
    facts: dict[str, Any]


def registry(host: str, login: RegistryLogin | None) -> Registry:
    """The registry of a host, used with these credentials.

    Raises:
        RegistryRefused: the credentials cannot be read any more.
    """
    server = HUB_SERVER if host == HUB else host
    if login is None:
        return Registry(server, Login(), allowed=env.REGISTRIES)
    try:
        password = sealed.unseal(login.secret).get("password", "")
    except sealed.Unsealable:
        if env.NODE_JOINED:  # it has no key of the platform
            raise RegistryRefused(wording.message("image.registry_joined", host=host, node=settings.NODE)) from None
        raise RegistryRefused(wording.message("image.registry_sealed", host=host)) from None
    return Registry(server, Login(login.username, password, login.ca), allowed=env.REGISTRIES)


def for_image(image: Image) -> tuple[Registry, Reference]:
    """The registry of an image, and its reference.

    Raises:
        RegistryRefused: see `check_login` and `registry`.
    """
    check_login(image)
    reference = parse(image.reference)
    return registry(reference.host, image.login), reference


def check_login(image: Image) -> None:
    """Refuse credentials that are no longer for the owner of an image: who shared them may take them back.

    Raises:
        RegistryRefused: says so.
    """
    if image.login is None:
        return
    owner = image.owner
    if owner is None or not RegistryLogin.objects.usable_by(owner).filter(pk=image.login.pk).exists():
        raise refused("withdrawn", image.login.host)


def look_up(image: Image) -> Found:
    """Return what its reference names now.

    Raises:
        RegistryRefused: says why and what to do.
    """
    client, reference = for_image(image)
    digest, text = client.manifest(reference.name, reference.version)
    by_architecture = manifests.choices(text, reference.host)
    manifest = manifest_for(client, reference, text)
    into = io.BytesIO()
    if manifest.config.size > MAX_CONFIG_BYTES:
        raise refused("no_image", reference.host)
    pace = Pace(CONFIG_S)

    def on_bytes(count: int) -> None:
        if not pace.keeps_up(count):
            raise refused("slow", reference.host)

    client.blob(reference.name, manifest.config.digest, manifest.config.size, into, on_bytes)
    facts = manifests.read_facts(into.getvalue(), reference.host)
    if by_architecture:
        facts["architecture"] = ", ".join(sorted(by_architecture))[:100]
    return Found(digest, manifest, facts)


class Manifests(Protocol):
    """Who gives manifests: a registry, or the data folder."""

    def manifest(self, name: str, version: str, /) -> tuple[str, bytes]: ...


def manifest_for(source: Manifests, reference: Reference, text: bytes, processor: str = "") -> Manifest:
    """The manifest for one kind of node, from a manifest or from an index of several.

    Args:
        processor: its kind; this machine's for "".

    Raises:
        RegistryRefused: there is none for machines of this kind.
    """
    by_architecture = manifests.choices(text, reference.host)
    if by_architecture:
        own = by_architecture.get(manifests.architecture(processor))
        if own is None:
            names = ", ".join(sorted(by_architecture))
            raise refused("other_machines", reference.host, names=names, own=manifests.architecture(processor))
        text = source.manifest(reference.name, own)[1]
    return manifests.read(text, reference.host)
