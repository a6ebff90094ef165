"""Names of container images: "registry.example.org:5000/lab/torch:2.1@sha256:…", as docker and podman write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid

HUB = "docker.io"
HUB_SERVER = "registry-1.docker.io"  # who answers for Docker Hub
OWN = "localhost/aip-images"  # what the platform calls those that it brought itself: not for people to name
MAX_LENGTH = 300
HIGHEST_PORT = 65_535
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[a-f0-9]{64}")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[1-9][0-9]{0,4})?")


@dataclass(frozen=True)
class Reference:
    """A container image by name. `host` is "docker.io" for Docker Hub; of `tag` and `digest` one may be empty."""

    host: str
    name: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return (
            f"{self.host}/{self.name}"
            + (f":{self.tag}" if self.tag else "")
            + (f"@{self.digest}" if self.digest else "")
        )

    @property
    def server(self) -> str:
        """The host that serves it."""
        return HUB_SERVER if self.host == HUB else self.host

    @property
    def version(self) -> str:
        """The version to request from a registry: the digest where one is named, otherwise the tag."""
        return self.digest or self.tag


def parse(text: str, *, field: str = "reference") -> Reference:
    """Parse a name as users write it; missing parts are filled in as docker does.

    Raises:
        Invalid: it is none, or names a registry without HTTPS.
    """
    name_text = text.strip()
    if name_text.lower().startswith("http://"):
        raise Invalid(_("Registries must use HTTPS: write the name without http://."), field=field)
    rest, _at, digest = name_text.removeprefix("https://").partition("@")
    first, slash, more = rest.partition("/")
    host, name = (
        (first.lower(), more) if slash and ("." in first or ":" in first or first == "localhost") else ("", rest)
    )
    tail, colon, tag = name.rpartition(":")
    name, tag = (tail, tag) if colon else (name, "")
    if host in ("", "index.docker.io", HUB_SERVER):
        host = HUB
    if host == HUB and "/" not in name:
        name = f"library/{name}"
    reference = Reference(host, name, tag or ("" if digest else "latest"), digest)
    is_valid = (
        len(name_text) <= MAX_LENGTH
        and _is_host(reference.host)
        and _NAME.fullmatch(reference.name)
        and (not reference.tag or _TAG.fullmatch(reference.tag))
        and (not reference.digest or _DIGEST.fullmatch(reference.digest))
        and (not colon or tag)
        and (not _at or digest)
    )
    if not is_valid:
        raise Invalid(_("A name such as pytorch/pytorch:2.1.0 or registry.example.org/lab/torch:2.1."), field=field)
    if f"{reference.host}/{reference.name}".startswith(OWN):
        raise Invalid(_("This is an internal copy of an image. Select that image in the list."), field=field)
    return reference


def _is_host(text: str) -> bool:
    """Whether it is a name of a machine, perhaps with a port that there can be."""
    _name, _colon, port = text.partition(":")
    return bool(_HOST.fullmatch(text)) and int(port or 443) <= HIGHEST_PORT


def check_host(text: str, *, field: str = "host") -> str:
    """Return a registry's name, as it precedes the first slash of its images.

    Raises:
        Invalid: it is none.
    """
    address = text.strip().lower()
    if address.startswith("http://"):
        raise Invalid(_("Registries must use HTTPS: write the name without http://."), field=field)
    host = address.removeprefix("https://").rstrip("/")
    if not _is_host(host) or len(host) > 255:
        raise Invalid(_("A name such as registry.example.org or registry.example.org:5000."), field=field)
    return HUB if host in ("index.docker.io", HUB_SERVER, "hub.docker.com") else host
