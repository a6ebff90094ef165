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
from workers.images.containers import archive, copies, exported, manifests, packages, room
from workers.images.containers.reference import OWN
from workers.images.models import Image, ImageUse
from workers.images.store import paths
from workers.images.store.archive import Figures
from workers.supervisor import container
from workers.supervisor.engine import Engine

#: Of an image's configuration, what a committed one keeps: its own, never a container's.
_KEPT = ("Env", "WorkingDir", "User", "Labels", "ExposedPorts", "Volumes", "StopSignal", "Shell")
#: What the container has of its own; docker takes it where nothing is sent, and an empty list for an answer.
_STARTS = ("Entrypoint", "Cmd")


class CannotCommit(DomainError, code="cannot_save"): ...


def described(below: Image) -> dict[str, Any]:
    """Columns of the image that is saved of a job in the container image `below`."""
    names = ("os", "python", "torch", "cuda")  # for which processors is known once it is saved
    facts = {name: below.facts[name] for name in names if below.facts.get(name)}
    base = below if below.source != Image.Source.SAVED else None  # that one knows on what it stands
    facts |= {
        packages.SAVED: packages.number(below) + 1,
        "base": base.reference if base else str(below.facts.get("base", "")),
    }
    facts["base_image"] = base.pk if base else below.facts.get("base_image", 0)
    return {"kind": Image.Kind.CONTAINER, "source": Image.Source.SAVED, "facts": facts}


def helpers() -> str:
    """What the names of such containers of this platform begin with."""
    return f"aip-save-{hashlib.sha256(str(settings.DATA_ROOT).encode()).hexdigest()[:12]}-"


def helper(image: int) -> str:
    """What the container is called that an image is made of."""
    return f"{helpers()}{image}"


def make(image: Image, use: ImageUse, figures: Figures, claim: Claim, alive: Callable[[], object]) -> Figures:
    """Build the image from the packed box, and replace the box by the image's archive; return the archive's figures.

    Raises:
        CannotCommit: the image below is no longer on this machine.
        DiskFull, EngineFull: there is no room for it.
        OSError: the engine refuses, or does not answer.
    """
    own, below = copies.engine(copies.LOAD_S), ImageUse.objects.select_related("image").get(pk=use.pk).image
    if own is None or below is None:
        raise CannotCommit(wording.message("image.no_engine_here", node=settings.NODE))
    source = copies.name_in_engine(below, use.digest or below.digest)
    if not copies.is_here(source):
        raise CannotCommit(wording.message("image.not_on_machine", name=use.name, node=settings.NODE))
    details = own.image(source)
    target = paths.packed(image.pk)
    if files.free_bytes(target.parent) < int(details.get("Size") or 0) + 2 * figures.bytes + env.MIN_FREE_BYTES // 8:
        raise disk.DiskFull()
    # unpacked into a container, then into a layer, and all of it once more for the archive
    room.check(own, int(details.get("Size") or 0) + 3 * figures.bytes)
    name = f"{OWN}:{secrets.token_hex(32)}"
    claim.write(reference=name)  # whoever tidies the engine leaves it
    _commit(own, image.pk, source, name, details, archive.layer(target, packages.folder(below), alive))
    try:
        pulse = _Counted(alive)
        figures.bytes, figures.packed, figures.sha256 = exported.write(own.export(name), target, pulse)
    except BaseException:
        with suppress(OSError):
            own.remove_image(name)
        raise
    facts = image.facts | {"architecture": str(details.get("Architecture") or manifests.architecture())[:20]}
    claim.write(digest=str(own.image(name)["Id"]), facts=facts)
    return figures


class _Counted:
    """A sign of life that takes a number of bytes."""

    def __init__(self, alive: Callable[[], object]) -> None:
        self.alive = alive

    def __call__(self, _count: int) -> None:
        self.alive()


def _commit(own: Engine, image: int, source: str, name: str, details: dict[str, Any], layer: Iterator[bytes]) -> None:
    own_config = details.get("Config") or {}
    config = {key: value for key, value in own_config.items() if key in _KEPT and value}
    config |= {key: own_config.get(key) or [] for key in _STARTS}
    labels = config.get("Labels") or {}
    # an engine hands labels down, and a machine's agent ends what bears ours and has no supervisor
    blank = {key: "" for key in labels if f"{key}.".startswith(f"{container.LABEL}.")}
    if blank:
        config["Labels"] = labels | blank
    box = helper(image)
    own.remove(box)  # of a saver that was killed
    described = {"Image": source, "Entrypoint": ["/bin/true"], "Cmd": [], "Labels": blank}
    own.create(box, described | {"HostConfig": {"NetworkMode": "none"}})
    try:
        own.upload(box, layer)
        own.commit(box, name, config)
    finally:
        own.remove(box)
