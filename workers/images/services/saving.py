"""Save what was installed in a job's box as an image.

`request` writes what is wanted; the box's own machine does it (`run`), under a claim, so that a killed saver is
followed by the next. The job's processes stand still while their files are copied.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import disk, files, wording
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Refusals
from aiplatform.lib.wording import Message
from workers.core import clock, queues
from workers.core.models import Job, Node
from workers.core.runs import RunDir
from workers.images.containers import committing, packages
from workers.images.models import Image, ImageUse, State, Visibility
from workers.images.services import uses
from workers.images.store import archive, below, boxes, engines, layers
from workers.images.store import paths as places
from workers.supervisor import hold, records

log = logging.getLogger(__name__)
CLAIMS = Claims(ttl=timedelta(seconds=60), epoch="tries", clock=clock.now, ends_with_process=True)
MAX_ATTEMPTS = 3
RETRY_DELAY_S = 20.0
OFFLINE_TIMEOUT = timedelta(minutes=30)  # a machine that is silent for so long is not waited for
MIN_AGE_S = 3600.0  # files that are younger may be in the making
PACKED = re.compile(r"\.?(?P<image>\d{1,18})\.tar\.zst(\.\w+)?")
RENEW_S = 5.0
STEP_S = 0.05


class CannotSave(DomainError, code="cannot_save"):
    """A job of which nothing can be saved now."""


def why_not(job: Job, by: User) -> str:
    """Why this person can save nothing of this job; "" where they can."""
    use = uses.find(job)
    if use is None or not use.boxed:
        return _("This job has no installed packages to save.")
    if use.image is None:
        return _("The image of this job was deleted, so no image can be saved on top of it.")
    if not below.is_usable(use.image, by):
        return _(
            "The base image %(name)s of %(owner)s is not shared with you any more. Request access before you "
            "save."
        ) % {
            "name": use.image, "owner": use.image.owner,
        }  # fmt: skip
    if not use.node:
        return _("The job has not started yet, or its packages were discarded. Start it first.")
    if max(len(layers.chain(use.image)), packages.number(use.image)) >= layers.MAX_LAYERS:
        return _("The image already has %(most)s saved layers. Build an image with these packages instead.") % {
            "most": layers.MAX_LAYERS
        }
    if use.node == settings.NODE and not (places.box(job.pk) / boxes.UPPER).is_dir():
        return _("The node stores packages in a plain folder, which cannot become an image: see isolation tier 2.")
    return ""


def request(
    *, job: Job, by: User, name: str, tag: str = "", description: str = "", visibility: str = Visibility.PRIVATE
) -> Image:
    """Request an image of the content of the job's box.

    Raises:
        CannotSave: it has none, or not now.
        Invalid, NameTaken: the name or the tag, or more people than see the image below.
    """
    use = uses.find(job)
    refusals = Refusals()
    with refusals:
        engines.check_name(user=by, name=name, tag=tag)
    with refusals:
        if why := why_not(job, by):
            raise CannotSave(why)
        if use and use.image:
            below.check(use.image, by, visibility)
    refusals.end()
    assert use is not None
    assert use.image is not None
    contained = use.image.kind == Image.Kind.CONTAINER
    own = committing.described(use.image) if contained else {"kind": Image.Kind.SAVED, "parent": use.image}
    try:
        with transaction.atomic():
            image = Image.objects.create(
                owner=by, name=name, tag=tag, description=description, visibility=visibility,
                engine=use.engine, job=job, state=State.SAVING, widest=below.widest(use.image, by), **own,
            )  # fmt: skip
            audit.record(by, "image_saved", image, job=job.pk, below=str(use.image), of=_owner(use.image))
            enqueue("images.save", queue=queues.work(use.node), image_id=image.pk)
    except IntegrityError:
        raise engines.taken(name, tag) from None
    return image


def _owner(image: Image) -> str:
    return image.owner.username if image.owner else ""


def again(image: Image, *, by: User) -> None:
    """Try once more to save what could not be saved.

    Raises:
        CannotSave: it did not fail, or nothing of its job can be saved (any more).
    """
    if image.status != State.FAILED or image.job is None or not Job.objects.editable_by(by).filter(pk=image.job.pk):
        raise CannotSave(_("Only an image that could not be saved can be saved again, while its job exists."))
    if why := why_not(image.job, by):
        raise CannotSave(why)
    use = uses.find(image.job)
    assert use is not None
    assert use.image is not None
    below.check(use.image, by, image.visibility)
    with transaction.atomic():
        rows = Image.objects.filter(pk=image.pk, state=State.FAILED)
        if rows.update(state=State.SAVING, message=Message(), tries=0, holder="", renewed_at=clock.now()):
            audit.record(by, "image_saved", image, job=image.job_id, below=str(use.image), of=_owner(use.image))
            enqueue("images.save", queue=queues.work(use.node), image_id=image.pk)


def run(image_id: int) -> None:
    """Save one image; one that another process saves, or whose box is in use, is skipped. Safe to send twice.

    The box is locked before the row is claimed: whoever holds the lock lives, however long a file takes them.
    """
    rows = Image.objects.filter(pk=image_id, state=State.SAVING)
    job_id = rows.values_list("job", flat=True).first()
    box = places.box(job_id or 0)
    if not box.is_dir():
        _claimed(rows, box)
        return
    with boxes.alone(box) as free:
        if free:
            _claimed(rows, box)


def _claimed(rows: QuerySet[Image], box: Path) -> None:
    claim = CLAIMS.acquire(rows)
    image = rows.select_related("job", "engine").first() if claim else None
    if claim is None or image is None:
        return
    try:
        if image.tries > MAX_ATTEMPTS:
            raise CannotSave(wording.message("image.save_gave_up", count=MAX_ATTEMPTS))
        figures = _save(image, box, claim)
    except ClaimLost:
        return
    except Exception as met:
        exc = disk.DiskFull() if disk.is_full(met) else met
        log.warning("image=%s not saved: %s", image.pk, met, exc_info=None if isinstance(exc, DomainError) else met)
        places.packed(image.pk).unlink(missing_ok=True)
        message = wording.of_error(exc) if isinstance(exc, DomainError) else wording.verbatim(exc)
        failed = message if isinstance(exc, DomainError) else wording.message("image.save_failed", error=str(exc))
        claim.release(state=State.FAILED, message=failed)
        return
    claim.release(
        state=State.READY, sha256=figures.sha256, size_bytes=figures.packed, unpacked_bytes=figures.bytes,
        files=figures.files, left_out=figures.left_out,
    )  # fmt: skip


def _save(image: Image, box: Path, claim: Claim) -> archive.Figures:
    use = ImageUse.objects.filter(job=image.job_id).select_related("job").first() if image.job_id else None
    if use is None or use.node != settings.NODE or not (box / boxes.UPPER).is_dir():
        raise CannotSave(wording.message("image.box_gone", node=use.node if use else settings.NODE))
    target = places.packed(image.pk)
    places.make_closed(target.parent)
    _remove_parts(image.pk)
    size = archive.measure(box / boxes.UPPER).bytes
    if size > env.MAX_SAVED_BYTES:
        facts = {"mib": size / (1 << 20), "limit_mib": env.MAX_SAVED_BYTES / (1 << 20)}
        raise CannotSave(wording.message("image.box_too_large", **facts))
    if files.free_bytes(target.parent) < 2 * size + env.MIN_FREE_BYTES // 8:
        raise disk.DiskFull()
    alive = _Pulse(claim)
    figures = _packed(use.job, box / boxes.UPPER, target, alive)
    if image.kind == Image.Kind.CONTAINER:
        return committing.make(image, use, figures, claim, alive)
    noted = Image(pk=image.pk, name=image.name, kind=Image.Kind.SAVED, sha256=figures.sha256)
    noted.unpacked_bytes, noted.files = figures.bytes, figures.files
    layers.here(noted, alive)  # reads back what was written, and the next start on this machine finds it there
    return figures


def _packed(job: Job, upper: Path, target: Path, alive: Callable[[], object]) -> archive.Figures:
    """Pack a layer in which nothing moved from the first file to the last.

    Raises:
        CannotSave: its processes went on in between, twice; a job that is ended meanwhile stands still the second time.
    """
    for _turn in range(2):
        with _at_rest(job) as still:
            figures = archive.pack(upper, target, alive=alive)
            if still():
                return figures
    raise CannotSave(wording.message("image.not_still"))


class _Pulse:
    """Keeps the claim of a long piece of work."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.last = claim, time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self.last > RENEW_S:
            self.claim.renew()
            self.last = time.monotonic()


@contextmanager
def _at_rest(job: Job) -> Iterator[Callable[[], bool]]:
    """Hold the job's processes still, if it runs; they continue even if this process dies.

    Yields:
        Whether they have stood still since.

    Raises:
        CannotSave: they do not come to rest.
    """
    job.refresh_from_db()
    run, word = RunDir.for_attempt(job.pk, job.attempt_number).path, secrets.token_hex(8)
    if _stands(run):
        yield lambda: _stands(run) and not Job.objects.filter(pk=job.pk, attempt_number__gt=job.attempt_number).exists()
        return
    hold.request(run, word)
    try:
        deadline = time.monotonic() + RETRY_DELAY_S
        while not (hold.is_held(run, word) or _stands(run)):
            if time.monotonic() > deadline:
                raise CannotSave(wording.message("image.no_rest", seconds=round(RETRY_DELAY_S)))
            time.sleep(STEP_S)
        ended = _stands(run)
        yield lambda: ended or hold.is_held(run, word)
    finally:
        hold.release(run)


def _stands(run: Path) -> bool:
    """Whether nothing of a run writes: it has not begun, is over, or went down with its supervisor."""
    keeper = records.read(run / records.SUPERVISOR)
    return (run / records.EXIT).exists() or not keeper or not records.is_alive(keeper)


def _remove_parts(image: int) -> None:
    """Remove what a saver that was killed had written."""
    for part in places.packed(image).parent.glob(f".{image}.tar.zst.*"):
        part.unlink(missing_ok=True)


def resend() -> None:
    """Send again what no process works on; nodes that return soon find it then."""
    for image in CLAIMS.free(Image.objects.filter(state=State.SAVING)).select_related("job")[:50]:
        node = ImageUse.objects.filter(job=image.job_id).values_list("node", flat=True).first()
        if not node:
            _give_up(image, wording.message("image.box_gone", node=""))
        elif _is_away(node, since=image.renewed_at or image.created_at):
            _give_up(image, wording.message("image.machine_away", node=node))
        else:
            enqueue("images.save", queue=queues.work(node), image_id=image.pk)


def _is_away(node: str, *, since: datetime) -> bool:
    """Whether a node is removed, or silent for so long that waiting for it is pointless."""
    row = Node.objects.filter(name=node).first()
    if row is None or row.state == Node.State.REMOVED:
        return True
    return row.state == Node.State.LOST and max(since, row.heartbeat_at or since) < clock.now() - OFFLINE_TIMEOUT


def _give_up(image: Image, message: Message) -> None:
    CLAIMS.free(Image.objects.filter(pk=image.pk, state=State.SAVING)).update(state=State.FAILED, message=message)


def sweep_files() -> None:
    """Remove packed layers that no image needs: of savers that died, and of deleted images."""
    folder, old = places.packed(0).parent, time.time() - MIN_AGE_S
    by_image: dict[int, list[Path]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if (name := PACKED.fullmatch(path.name)) and path.lstat().st_mtime < old:
            by_image.setdefault(int(name["image"]), []).append(path)
    rows = Image.objects.filter(Q(kind=Image.Kind.SAVED) | Q(source=Image.Source.SAVED), pk__in=by_image)
    state_of = dict(rows.values_list("pk", "state"))
    for image, paths in by_image.items():
        state = state_of.get(image)
        for path in paths:
            if state != State.SAVING and (state != State.READY or path != places.packed(image)):
                path.unlink(missing_ok=True)
