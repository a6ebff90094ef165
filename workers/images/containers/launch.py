"""What a job in a container image is started with, and what has to be on its machine before."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from django.conf import settings

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from workers.core.kinds import Launch, NotYet
from workers.core.models import Attempt
from workers.execution import tickets
from workers.images.containers import copies, registry_client, stored
from workers.images.models import Image, ImageUse, NodeCopy, State
from workers.supervisor import records, sandbox

SAY_S = 10.0  # between two lines of progress in a log
STAMP_FILE = ".image"  # in the run directory: when the last line was


class CannotUse(DomainError, code="cannot_use_image"):
    """A job cannot run in its container image on this machine."""


def with_container(launch: Launch, use: ImageUse, image: Image) -> Launch:
    """The launch of a job in a container image, the same one in every attempt.

    Raises:
        CannotUse: this machine runs no containers, or the image is not to be had.
        NotYet: the server asks the registry which one it is.
    """
    level = tickets.tier()[0]
    if level < sandbox.CONTAINER:
        facts = {"node": settings.NODE, "name": use.name, "tier": level}
        raise CannotUse(wording.message("image.needs_container", **facts))
    digest = use.digest or _first_digest(use, image)
    local = image.source == Image.Source.LOCAL
    own = {
        "image": copies.name_in_engine(image, digest),
        "image_id": image.pk,
        "digest": "" if local else digest,
    }
    return dataclasses.replace(launch, container=own | {"writable": use.boxed})


def _first_digest(use: ImageUse, image: Image) -> str:
    """Save the digest for a new job: its restores use the same, even after the image's row is deleted.

    Raises:
        CannotUse: the image was not found, or the server was refused.
        NotYet: the server asks the registry which one it is.
    """
    if use.message:  # the server asked; whoever restores the job has it ask again
        ImageUse.objects.filter(pk=use.pk).update(message=wording.Message())
        raise CannotUse(wording.message("image.not_fetched", name=use.name, why=use.message))
    if image.state != State.READY:
        raise CannotUse(wording.message("image.not_ready", name=use.name))
    if image.policy == Image.Policy.NEWEST and stored.is_needed(image):
        raise NotYet(wording.message("image.on_its_way", name=use.name))  # the server looks it up
    digest = _digest(image)
    ImageUse.objects.filter(pk=use.pk, digest="").update(digest=digest)
    return digest


def _digest(image: Image) -> str:
    """The digest for a new job: the saved one, or the one that its tag names now."""
    if image.policy == Image.Policy.PINNED or image.source in (Image.Source.LOCAL, Image.Source.SAVED):
        return image.digest
    current = registry_client.look_up(image)
    newest = {"digest": current.digest, "size_bytes": current.manifest.bytes, "facts": current.facts}
    Image.objects.filter(pk=image.pk).update(**newest)
    return current.digest


def arrive(attempt: Attempt, launch: Launch, home: Path) -> None:
    """See that the image of a launch is on this machine; the log says how far it is.

    Raises:
        NotYet: it is on its way.
        CannotUse: it cannot come; says why.
    """
    name = launch.container.get("image")
    if not name or tickets.tier()[0] < sandbox.CONTAINER or copies.is_here(name):
        return
    shown = _shown(attempt)
    if not launch.container["digest"]:
        raise CannotUse(wording.message("image.not_on_machine", name=shown, node=settings.NODE))
    copy = copies.request(launch.container["image_id"], launch.container["digest"])
    if copy.state == State.FAILED:
        if copy.changed_at >= attempt.assigned_at:
            raise CannotUse(wording.message("image.not_fetched", name=shown, why=copy.message))
        copies.try_again(copy)
    _write_progress(home, shown, copy)
    raise NotYet(wording.message("image.on_its_way", name=shown))


def _shown(attempt: Attempt) -> str:
    return ImageUse.objects.filter(job=attempt.job_id).values_list("name", flat=True).first() or ""


def _write_progress(home: Path, shown: str, copy: NodeCopy) -> None:
    last = home / STAMP_FILE
    if last.exists() and time.time() - last.stat().st_mtime < SAY_S:
        return
    last.touch()
    copies.note(home / records.LOG, shown, copy)
