"""What of a container image lies in the shared data folder, for machines that cannot ask its registry themselves."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aiplatform import env
from aiplatform.lib import sealed
from workers.core.models import Node
from workers.images.containers import registry_client
from workers.images.containers.manifests import Manifest
from workers.images.containers.reference import Reference, parse
from workers.images.models import Image, NodeCopy
from workers.images.store import paths


def source_of(reference: Reference) -> str:
    """Where an image comes from: who may read one digest there may not read it elsewhere."""
    return f"{reference.host}/{reference.name}"


class StoredManifests:
    """Manifests in the data folder, with the interface of a registry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def manifest(self, _name: str, digest: str) -> tuple[str, bytes]:
        """A manifest that was put there.

        Raises:
            FileNotFoundError: it is not there, or not what it must be.
        """
        text = paths.blob(self.folder, digest).read_bytes()
        if f"sha256:{hashlib.sha256(text).hexdigest()}" != digest:
            raise FileNotFoundError(digest)
        return digest, text


def is_needed(image: Image) -> bool:
    """Whether this machine cannot ask the registry of an image by itself."""
    if not env.NODE_JOINED or image.login is None:
        return False
    try:
        sealed.unseal(image.login.secret)
    except sealed.Unsealable:
        return True
    return False


def here(copy: NodeCopy) -> Manifest | None:
    """The manifest of a copy on its node, if all of its blobs are in the data folder."""
    reference = parse(copy.image.reference)
    folder = paths.blobs(source_of(reference))
    try:
        source = StoredManifests(folder)
        text = source.manifest(reference.name, copy.digest)[1]
        manifest = registry_client.manifest_for(source, reference, text, processor_of(copy.node))
    except FileNotFoundError:
        return None
    return manifest if all(paths.blob(folder, blob.digest).exists() for blob in manifest.blobs) else None


def processor_of(node: str) -> str:
    """The architecture that a node reported; "" where it is unknown."""
    facts = Node.objects.filter(name=node).values_list("facts", flat=True).first() or {}
    return str(facts.get("machine") or "")
