"""Make a container image of what was installed in a job: the image that it runs in, and its packages on top.

The engine makes it of a container that never runs: nothing that the job was told, and nothing of what it wrote
elsewhere, can be part of it. It is kept as one archive, so the image below may go, and any machine can start it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from django.conf import settings

from aiplatform import env
from aiplatform.lib import disk, files, wording
from aiplatform.lib.claims import Claim
from aiplatform.lib.errors import DomainError
from workers.images.containers import archive, copies, exported, packages
from workers.images.containers.reference import OWN
from workers.images.models import Image, ImageUse
from workers.images.services import places
from workers.images.services.archive import Figures
from workers.supervisor.engine import Engine

#: Of an image's configuration, what a committed one keeps: its own, never a container's.
_KEPT = ("Env", "WorkingDir", "User", "Labels", "ExposedPorts", "Volumes", "StopSignal", "Shell")
#: What the container has of its own; docker takes it where nothing is sent, and an empty list for an answer.
_STARTS = ("Entrypoint", "Cmd")


class CannotCommit(DomainError):
    code = "cannot_save"


def described(below: Image) -> dict[str, Any]:
    """Columns of the image that is saved of a job in the container image `below`."""
    names = ("os", "architecture", "python", "torch", "cuda")
    facts = {name: below.facts[name] for name in names if below.facts.get(name)}
    facts |= {packages.SAVED: packages.number(below) + 1, "base": str(below.facts.get("base") or below.reference)}
    return {"kind": Image.Kind.CONTAINER, "source": Image.Source.SAVED, "facts": facts}


def helpers() -> str:
    """What the names of such containers of this platform begin with."""
    return f"aip-save-{hashlib.sha256(str(settings.DATA_ROOT).encode()).hexdigest()[:12]}-"


def helper(image: int) -> str:
    """What the container is called that an image is made of."""
    return f"{helpers()}{image}"


def make(image: Image, use: ImageUse, figures: Figures, claim: Claim, alive: Callable[[], object]) -> Figures:
    """Make the image out of the packed box, and put its archive in the place of that; figures of the archive.

    Raises:
        CannotCommit: the image below is no longer on this machine.
        OSError: the engine refuses, or does not answer.
    """
    own, below = copies.engine(copies.LOAD_S), ImageUse.objects.select_related("image").get(pk=use.pk).image
    if own is None or below is None:
        raise CannotCommit(wording.message("image.no_engine_here", node=settings.NODE))
    source = copies.name_in_engine(below, use.digest or below.digest)
    if not copies.is_here(source):
        raise CannotCommit(wording.message("image.not_on_machine", name=use.name, node=settings.NODE))
    about = own.image(source)
    target = places.packed(image.pk)
    if files.free_bytes(target.parent) < int(about.get("Size") or 0) + 2 * figures.bytes + env.MIN_FREE_BYTES // 8:
        raise disk.DiskFull()
    name = f"{OWN}:{secrets.token_hex(32)}"
    claim.write(reference=name)  # whoever tidies the engine leaves it
    _commit(own, image.pk, source, name, about, archive.layer(target, packages.folder(below), alive))
    try:
        pulse = _Counted(alive)
        figures.bytes, figures.packed, figures.sha256 = exported.write(own.export(name), target, pulse)
    except BaseException:
        with suppress(OSError):
            own.remove_image(name)
        raise
    claim.write(digest=str(own.image(name)["Id"]))
    return figures


class _Counted:
    """A sign of life that takes a number of bytes."""

    def __init__(self, alive: Callable[[], object]) -> None:
        self.alive = alive

    def __call__(self, _count: int) -> None:
        self.alive()


def _commit(own: Engine, image: int, source: str, name: str, about: dict[str, Any], layer: Iterator[bytes]) -> None:
    own_config = about.get("Config") or {}
    config = {key: value for key, value in own_config.items() if key in _KEPT and value}
    config |= {key: own_config.get(key) or [] for key in _STARTS}
    box = helper(image)
    own.remove(box)  # of a saver that was killed
    own.create(box, {"Image": source, "Entrypoint": ["/bin/true"], "Cmd": [], "HostConfig": {"NetworkMode": "none"}})
    try:
        own.put(box, layer)
        own.commit(box, name, config)
    finally:
        own.remove(box)
