"""Copies of container images on this machine: fetched from the registry by the platform, given to the engine here.

Blobs lie in the data folder, checked by their digests, so one download serves all machines; each name in a registry has
a folder of its own, since to know a digest is not to be allowed to read it. What is wanted is a row
(`NodeCopy`); the machine itself fetches it under a claim, so that a killed fetcher is followed by the next, and goes
on with the blobs that are there.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.conf import settings

from aiplatform import env
from aiplatform.lib import disk, files, wording
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from workers.core import clock, queues
from workers.execution import tickets
from workers.images.containers import archive, exported, registry_client, room, stored
from workers.images.containers.manifests import Blob, Manifest
from workers.images.containers.patience import Pace
from workers.images.containers.pulse import Pulse
from workers.images.containers.reference import OWN, Reference, parse
from workers.images.containers.registry import Registry, refused
from workers.images.models import Image, NodeCopy, State
from workers.images.store import paths
from workers.supervisor import log_lines
from workers.supervisor.engine import Engine, Refused

log = logging.getLogger(__name__)
CLAIMS = Claims(ttl=timedelta(seconds=60), epoch="tries", clock=clock.now, ends_with_process=True)
LOAD_S = 1800.0  # an engine unpacks gigabytes meanwhile
MAX_ATTEMPTS = 5


class CannotFetch(DomainError, code="cannot_fetch_image"): ...


def engine(answer_s: float = 30.0) -> Engine | None:
    """The container engine of this machine, None where it offers no containers."""
    socket = tickets.containers().container.get("engine", "")
    return Engine(socket, answer_s) if socket else None


def name_of(reference: str, digest: str) -> str:
    """What engines call the platform's own copy of an image; one for each name in a registry, as with its blobs."""
    return f"{OWN}:{hashlib.sha256(f'{stored.source_of(parse(reference))}@{digest}'.encode()).hexdigest()}"


def name_in_engine(image: Image, digest: str) -> str:
    """What the engine of a machine knows an image by, in the version with this digest."""
    if image.source == Image.Source.LOCAL:
        return digest
    return image.reference if image.source == Image.Source.SAVED else name_of(image.reference, digest)


def is_here(name: str) -> bool:
    """Whether the engine of this machine holds an image."""
    own = engine()
    try:
        return own is not None and bool(own.image(name))
    except OSError:
        return False


def request(image_id: int, digest: str) -> NodeCopy:
    """Request a copy on this node; a request for one that failed before tries again. Safe to repeat."""
    copy, created = NodeCopy.objects.get_or_create(image_id=image_id, digest=digest, node=settings.NODE)
    if copy.state == State.READY:  # the engine forgot it
        again = NodeCopy.objects.filter(pk=copy.pk, state=State.READY)
        again.update(state=State.NEW, done_bytes=0, tries=0, changed_at=clock.now())
        copy.refresh_from_db()
    if created or CLAIMS.is_free(copy):
        enqueue("images.fetch", queue=queues.work(settings.NODE), copy_id=copy.pk)
    return copy


def try_again(copy: NodeCopy) -> None:
    """Let a copy that failed be fetched once more."""
    rows = NodeCopy.objects.filter(pk=copy.pk, state=State.FAILED)
    if rows.update(state=State.NEW, message=wording.Message(), tries=0, changed_at=clock.now()):
        enqueue("images.fetch", queue=queues.work(settings.NODE), copy_id=copy.pk)


def run(copy_id: int) -> None:
    """Fetch one copy; one that another process fetches is skipped. Safe to send twice."""
    rows = NodeCopy.objects.filter(pk=copy_id, state=State.NEW, node=settings.NODE)
    claim = CLAIMS.acquire(rows)
    copy = rows.select_related("image__login").first() if claim else None
    if claim is None or copy is None:
        return
    try:
        if copy.tries > MAX_ATTEMPTS:
            raise CannotFetch(wording.message("image.fetch_gave_up", count=MAX_ATTEMPTS))
        if stored.is_needed(copy.image) and stored.here(copy) is None:
            claim.release(tries=copy.tries - 1)  # the server fetches it, and sends this again
            return
        _fetch_and_load(copy, claim)
    except ClaimLost:
        return
    except Exception as exc:
        log.warning("image=%s not fetched: %s", copy.image_id, exc, exc_info=not isinstance(exc, DomainError | OSError))
        claim.release(state=State.FAILED, message=words(exc), changed_at=clock.now())
        return
    claim.release(state=State.READY, message=wording.Message(), changed_at=clock.now())


def words(exc: Exception) -> wording.Message:
    """Why a copy did not come."""
    return (
        wording.of_error(exc) if isinstance(exc, DomainError) else wording.message("image.load_failed", error=str(exc))
    )


def _fetch_and_load(copy: NodeCopy, claim: Claim) -> None:
    """Fetch what is missing and load it into the engine."""
    name = name_in_engine(copy.image, copy.digest)
    own = engine(LOAD_S)
    if own is None:
        raise CannotFetch(wording.message("image.no_engine_here", node=settings.NODE))
    if is_here(name):
        return
    if copy.image.source == Image.Source.SAVED:
        exported.load(own, copy.image, Pulse(claim, copy.image.size_bytes))
        return
    folder = paths.blobs(stored.source_of(parse(copy.image.reference)))
    if stored.is_needed(copy.image):
        registry_client.check_login(copy.image)
        manifest = stored.here(copy)
        if manifest is None:
            raise CannotFetch(wording.message("image.registry_joined", host=copy.image.login, node=settings.NODE))
        pulse = Pulse(claim, manifest.bytes)
        pulse(manifest.bytes)
    else:
        registry, reference = registry_client.for_image(copy.image)
        manifest = registry_client.manifest_for(registry, reference, registry.manifest(reference.name, copy.digest)[1])
        pulse = Pulse(claim, manifest.bytes)
        fetch(registry, reference, manifest, folder, pulse)
    _load(own, manifest, name, folder, pulse)


def fetch(registry: Registry, reference: Reference, manifest: Manifest, folder: Path, pulse: Pulse) -> None:
    """Fetch missing blobs of an image.

    Raises:
        DiskFull: they find no room.
        RegistryRefused: it does not give one, or too slowly.
    """
    missing = [blob for blob in dict.fromkeys(manifest.blobs) if not paths.blob(folder, blob.digest).exists()]
    pulse(manifest.bytes - sum(blob.size for blob in missing))
    paths.make_closed(folder)
    if files.free_bytes(folder) < sum(blob.size for blob in missing) + env.MIN_FREE_BYTES // 8:
        raise disk.DiskFull()
    pace = Pace()

    def on_bytes(count: int) -> None:
        if not pace.keeps_up(count):
            raise refused("slow", registry.host)
        pulse(count)

    for blob in missing:
        _fetch(registry, reference, blob, folder, on_bytes)


def _fetch(
    registry: Registry, reference: Reference, blob: Blob, folder: Path, on_bytes: Callable[[int], object]
) -> None:
    """Fetch one blob; it gets its final path only when it is complete and verified."""
    target = paths.blob(folder, blob.digest)
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}")  # of all machines, so no process id
    try:
        with paths.closed_file(part) as file:
            registry.blob(reference.name, blob.digest, blob.size, file, on_bytes)
            file.flush()
            os.fsync(file.fileno())
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)


def _load(own: Engine, manifest: Manifest, name: str, folder: Path, pulse: Pulse) -> None:
    room.check(own, room.UNPACKED * manifest.bytes)
    length, pieces = archive.stream(manifest, name, partial(paths.blob, folder))
    output = pulse.during(lambda: own.load(length, pieces))
    if not is_here(name):
        raise Refused(500, output[-300:] or "the engine took the image and does not have it")


def note(log_file: Path, shown: str, copy: NodeCopy) -> None:
    """Say in the log of a job that has not begun how far its image is."""
    facts = {"name": shown, "done": copy.done_bytes, "total": copy.total_bytes}
    with log_file.open("a", encoding="utf-8") as file:
        file.write(f"{log_lines.line(log_lines.IMAGE, 'fetching', **facts)}\n")
