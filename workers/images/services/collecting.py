"""What machines that joined cannot fetch: they have no key to open credentials, so the server fetches for them.

It puts an image's manifests and blobs into the shared data folder, where the machine finds all that it gives to its
engine. The row of the copy is the request; both work on it under the same claim, so whoever is killed is followed by
the next, which goes on with what is there.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, QuerySet

from aiplatform import env
from aiplatform.lib import files, wording
from aiplatform.lib.claims import ClaimLost
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from workers.core import clock, queues
from workers.core.models import Node
from workers.core.states import FINAL, JobState
from workers.images.containers import copies, manifests, registry_client, stored
from workers.images.containers.pulse import Pulse
from workers.images.containers.reference import Reference
from workers.images.models import Image, ImageUse, NodeCopy, State
from workers.images.services.saving import OFFLINE_TIMEOUT
from workers.images.store import paths

log = logging.getLogger(__name__)
#: Machines that read what is sent to them.
_HEARD = (Node.State.LIVE, Node.State.SUSPECT, Node.State.DRAINING)
#: What a registry says that does not pass by itself: the image is of no use to anybody until it is looked up again.
GONE = ("image.registry_credentials", "image.registry_sign_in", "image.registry_not_found")


def collect(copy_id: int) -> None:
    """Fetch what one machine cannot, and let it go on. While another is fetched it waits. Safe to send twice."""
    with _turn() as free:
        if free:
            _claimed(copy_id)


@contextmanager
def _turn() -> Iterator[bool]:
    """Whether no other process on this node fetches: the other processes for long work stay free for other work."""
    folder = paths.open_folder(paths.local())
    with (folder / ".collecting").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _claimed(copy_id: int) -> None:
    rows = _wanted().filter(pk=copy_id)
    claim = copies.CLAIMS.acquire(rows)
    copy = rows.select_related("image__login").first() if claim else None
    if claim is None or copy is None:
        return
    try:
        if copy.tries > copies.MAX_ATTEMPTS:
            raise copies.CannotFetch(wording.message("image.fetch_gave_up", count=copies.MAX_ATTEMPTS))
        _collect(copy, Pulse(claim, 0))
    except ClaimLost:
        return
    except Exception as exc:
        log.warning("image=%s not fetched for %s: %s", copy.image_id, copy.node, exc, exc_info=not _is_ours(exc))
        claim.release(state=State.FAILED, message=copies.words(exc), changed_at=clock.now())
        return
    claim.release(changed_at=clock.now(), tries=0)
    enqueue("images.fetch", queue=queues.work(copy.node), copy_id=copy.pk)


def _collect(copy: NodeCopy, pulse: Pulse) -> None:
    registry, reference = registry_client.for_image(copy.image)
    kind = stored.processor_of(copy.node)
    folder = paths.blobs(stored.source_of(reference))
    paths.make_closed(folder)
    digest, text = registry.manifest(reference.name, copy.digest)
    own = _own(text, reference, kind)
    for name, content in {digest: text, **({own: registry.manifest(reference.name, own)[1]} if own else {})}.items():
        files.write_atomically(paths.blob(folder, name), content)
    manifest = registry_client.manifest_for(stored.StoredManifests(folder), reference, text, kind)
    pulse.total = manifest.bytes
    copies.fetch(registry, reference, manifest, folder, pulse)


def _own(text: bytes, reference: Reference, kind: str) -> str:
    """The digest of the manifest for a kind of machine in an index; "" where this is one image, or has none for it."""
    return manifests.choices(text, reference.host).get(manifests.architecture(kind), "")


def _wanted() -> QuerySet[NodeCopy]:
    """Copies on other machines that need credentials, are not there, and for which a job waits."""
    rows = NodeCopy.objects.filter(_waiting(), state=State.NEW, image__login__isnull=False)
    return rows.filter(Exists(Node.objects.filter(name=OuterRef("node"), state__in=_HEARD))).exclude(node=settings.NODE)


def _waiting() -> Exists:
    """Whether a job that has not ended needs the image of a copy; one just placed may not have noted which one."""
    uses = ImageUse.objects.filter(image=OuterRef("image"), digest__in=["", OuterRef("digest")])
    return Exists(uses.exclude(job__state__in=FINAL))


def _end_unwanted() -> None:
    """End fetches that no job waits for, and those for missing nodes."""
    free = copies.CLAIMS.free(NodeCopy.objects.filter(state=State.NEW))
    own = Node.objects.filter(name=OuterRef("node")).exclude(state=Node.State.REMOVED)
    is_present = Exists(own.exclude(state=Node.State.LOST, heartbeat_at__lt=clock.now() - OFFLINE_TIMEOUT))
    for code, rows in (("image.fetch_unwanted", ~_waiting()), ("image.fetch_machine_gone", ~is_present)):
        free.filter(rows).update(state=State.FAILED, message=wording.message(code), changed_at=clock.now())


def go_on() -> None:
    """Fetch for the machines that wait, and look up for their jobs; a machine without the key does neither.

    One image comes at a time, and people take turns: a registry that is slow holds up its own.
    """
    if env.NODE_JOINED:
        return
    _end_unwanted()
    missing = []
    for copy in copies.CLAIMS.free(_wanted()).select_related("image__login"):
        try:
            is_here = stored.here(copy) is not None
        except OSError as exc:  # of the shared folder: it is looked at again
            log.warning("image=%s not looked for: %s", copy.image_id, exc)
        except Exception as exc:
            log.warning("image=%s not for %s: %s", copy.image_id, copy.node, exc, exc_info=not _is_ours(exc))
            rows = copies.CLAIMS.free(_wanted().filter(pk=copy.pk))
            rows.update(state=State.FAILED, message=copies.words(exc), changed_at=clock.now())
        else:
            if is_here:
                enqueue("images.fetch", queue=queues.work(copy.node), copy_id=copy.pk)
            else:
                missing.append(copy)
    if missing:
        served = _served()
        turn = min(missing, key=lambda copy: (served.get(copy.image.owner_id, copy.changed_at), copy.pk))
        enqueue("images.collect", queue=queues.work(settings.NODE), copy_id=turn.pk)
    first = dict(_unknown().order_by("-pk").values_list("image__owner", "pk"))  # one for each person
    for job_id in first.values():
        enqueue("images.newest", queue=queues.work(settings.NODE), job_id=job_id)


def _served() -> dict[int | None, datetime]:
    """When people were last fetched something for, well or not."""
    rows = NodeCopy.objects.filter(image__login__isnull=False).exclude(node=settings.NODE).exclude(state=State.NEW)
    return dict(rows.values_list("image__owner").annotate(last=Max("changed_at")))


def _is_ours(exc: Exception) -> bool:
    """Whether an error is one that was to be expected."""
    return isinstance(exc, DomainError | OSError)


def _unknown() -> QuerySet[ImageUse]:
    """Jobs just placed elsewhere whose image is the newest of its tag, which only this node can ask for."""
    rows = ImageUse.objects.filter(
        digest="", message=wording.Message(), image__login__isnull=False, image__policy=Image.Policy.NEWEST
    )
    return rows.filter(job__state=JobState.ASSIGNED, image__state=State.READY)


def newest(job_id: int) -> None:
    """Save for one job which image its tag names now. Safe to send twice."""
    use = _unknown().filter(pk=job_id).select_related("image__login").first()
    if use is None or use.image is None:
        return
    image = use.image
    try:
        current = registry_client.look_up(image)
    except DomainError as exc:  # the job ends with it
        message = wording.of_error(exc)
        ImageUse.objects.filter(pk=use.pk, digest="").update(message=message)
        if message.code in GONE:
            Image.objects.filter(pk=image.pk, state=State.READY).update(state=State.FAILED, message=message)
        return
    Image.objects.filter(pk=image.pk).update(
        digest=current.digest, size_bytes=current.manifest.bytes, facts=current.facts
    )
    ImageUse.objects.filter(pk=use.pk, digest="").exclude(job__state__in=FINAL).update(digest=current.digest)
