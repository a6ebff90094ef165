"""Manifests of container images: which blobs one is made of on a machine, and what people are told of it."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import dataclass
from typing import Any

from workers.images.containers.registry import INDEXES, MANIFESTS, refused

MAX_LAYERS = 300
_DIGEST = re.compile(r"sha256:[a-f0-9]{64}")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Blob:
    """One piece of an image, by what it must be."""

    digest: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What an image is made of on one kind of machine."""

    config: Blob
    layers: tuple[Blob, ...]

    @property
    def blobs(self) -> tuple[Blob, ...]:
        return (self.config, *self.layers)

    @property
    def bytes(self) -> int:
        """What has to be fetched in all."""
        return sum(blob.size for blob in self.blobs)


def architecture(processor: str = "") -> str:
    """A kind of processor as registries call it; this machine's for ""."""
    processor = processor or platform.machine()
    return _ARCHITECTURES.get(processor, processor)


def choices(text: bytes, host: str) -> dict[str, str]:
    """Digests by architecture of an index of images for several; empty for a single image.

    Raises:
        RegistryRefused: it is neither.
    """
    value = _parsed(text, host)
    if value.get("mediaType") in INDEXES or "manifests" in value:
        rows = value.get("manifests")
        digests: dict[str, str] = {}
        for row in rows if isinstance(rows, list) else []:
            target = row.get("platform") if isinstance(row, dict) else None
            if isinstance(target, dict) and target.get("os") == "linux" and _DIGEST.fullmatch(str(row.get("digest"))):
                digests.setdefault(str(target.get("architecture"))[:20], row["digest"])
        if not digests:
            raise refused("no_linux", host)
        return digests
    return {}


def read(text: bytes, host: str) -> Manifest:
    """The manifest of one image.

    Raises:
        RegistryRefused: it is none that can be run.
    """
    value = _parsed(text, host)
    if value.get("mediaType") not in (*MANIFESTS, None) or not isinstance(value.get("layers"), list):
        raise refused("no_image", host)
    layers = tuple(_blob(row, host) for row in value["layers"])
    if len(layers) > MAX_LAYERS:
        raise refused("no_image", host)
    return Manifest(_blob(value.get("config"), host), layers)


def read_facts(config: bytes, host: str) -> dict[str, Any]:
    """Facts of an image that users see, read from its configuration.

    Raises:
        RegistryRefused: it cannot be read.
    """
    value = _parsed(config, host)
    section = value.get("config")
    inner: dict[str, Any] = section if isinstance(section, dict) else {}
    variables = dict(
        line.partition("=")[::2] for line in inner.get("Env") or [] if isinstance(line, str)
    )  # what programs of the engine are called stands there by convention
    facts = {
        "os": str(value.get("os", ""))[:20],
        "architecture": str(value.get("architecture", ""))[:20],
        "created": str(value.get("created", ""))[:40],
        "python": variables.get("PYTHON_VERSION", "")[:20],
        "torch": variables.get("PYTORCH_VERSION", "")[:20],
        "cuda": variables.get("CUDA_VERSION", "")[:20],
    }
    return {name: text for name, text in facts.items() if text}


def _blob(row: object, host: str) -> Blob:
    if not isinstance(row, dict) or not _DIGEST.fullmatch(str(row.get("digest"))):
        raise refused("no_image", host)
    size = row.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 42:
        raise refused("no_image", host)
    return Blob(str(row["digest"]), size)


def _parsed(text: bytes, host: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise refused("no_image", host) from exc
    if not isinstance(value, dict):
        raise refused("no_image", host)
    return value
