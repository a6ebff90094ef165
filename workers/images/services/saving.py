"""Save what was installed in a job's box as an image.

`request` writes what is wanted; the box's own machine does it (`run`), under a claim, so that a killed saver is
followed by the next. The job's processes stand still while their files are copied.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform import env
from aiplatform.lib import disk, files, wording
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Refusals
from workers import clock, queues
from workers.images.models import Image, ImageUse, State, Visibility
from workers.images.services import archive, boxes, engines, layers, places, uses
from workers.models import Job
from workers.runs import RunDir
from workers.supervisor import hold

log = logging.getLogger(__name__)
CLAIMS = Claims(ttl=timedelta(seconds=60), epoch="tries", clock=clock.now, ends_with_process=True)
MOST_TRIES = 3
REST_S = 20.0
RENEW_S = 5.0
STEP_S = 0.05


class CannotSave(DomainError):
    """A job of which nothing can be saved now."""

    code: ClassVar[str] = "cannot_save"


def why_not(job: Job) -> str:
    """Why nothing of this job can be saved; "" where it can."""
    use = uses.of(job)
    if use is None or not use.boxed:
        return _("This job keeps no packages, so there is nothing to save.")
    if use.image is None:
        return _("Its image was deleted, so nothing can be saved on top of it.")
    if not use.node:
        return _("It has not begun yet, or its packages were forgotten. Start it first.")
    if len(layers.chain(use.image)) >= layers.MOST:
        return _("It stands on %(most)s saved images already. Build an image with these packages instead.") % {
            "most": layers.MOST
        }
    if use.node == settings.NODE and not (places.box(job.pk) / boxes.UPPER).is_dir():
        return _("Its machine keeps packages in a simple folder, which cannot become an image: see isolation tier 2.")
    return ""


def request(
    *, job: Job, by: User, name: str, tag: str = "", description: str = "", visibility: str = Visibility.PRIVATE
) -> Image:
    """Ask for an image of what is in the job's box.

    Raises:
        CannotSave: it has none, or not now.
        Invalid, NameTaken: the name or the tag.
    """
    found = Refusals()
    with found:
        engines.check_name(user=by, name=name, tag=tag)
    with found:
        if why := why_not(job):
            raise CannotSave(why)
    found.end()
    use = uses.of(job)
    assert use is not None
    try:
        with transaction.atomic():
            image = Image.objects.create(
                kind=Image.Kind.SAVED, owner=by, name=name, tag=tag, description=description, visibility=visibility,
                engine=use.engine, parent=use.image, job=job, state=State.SAVING,
            )  # fmt: skip
            audit.record(by, "image_saved", image, job=job.pk)
            enqueue("images.save", queue=queues.work(use.node), image_id=image.pk)
    except IntegrityError:
        raise engines.taken(name, tag) from None
    return image


def run(image_id: int) -> None:
    """Save one image; somebody else who is at it is left alone. Safe to send twice."""
    rows = Image.objects.filter(pk=image_id, state=State.SAVING)
    claim = CLAIMS.take(rows)
    image = rows.select_related("job", "engine").first() if claim else None
    if claim is None or image is None:
        return
    try:
        if image.tries > MOST_TRIES:
            raise CannotSave(wording.message("image.save_gave_up", count=MOST_TRIES))
        figures = _save(image, claim)
    except ClaimLost:
        return
    except Exception as exc:
        log.warning("image=%s not saved: %s", image.pk, exc, exc_info=not isinstance(exc, DomainError))
        places.packed(image.pk).unlink(missing_ok=True)
        said = wording.of_error(exc) if isinstance(exc, DomainError) else wording.verbatim(exc)
        failed = said if isinstance(exc, DomainError) else wording.message("image.save_failed", error=str(exc))
        claim.release(state=State.FAILED, message=failed)
        return
    claim.release(
        state=State.READY, sha256=figures.sha256, size_bytes=figures.packed, unpacked_bytes=figures.bytes,
        files=figures.files, left_out=figures.left_out,
    )  # fmt: skip


def _save(image: Image, claim: Claim) -> archive.Figures:
    use = ImageUse.objects.filter(job=image.job_id).select_related("job").first() if image.job_id else None
    box = places.box(image.job_id or 0)
    if use is None or use.node != settings.NODE or not (box / boxes.UPPER).is_dir():
        raise CannotSave(wording.message("image.box_gone", node=use.node if use else settings.NODE))
    target = places.packed(image.pk)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_parts(image)
    if files.free_bytes(target.parent) < 2 * archive.measure(box / boxes.UPPER).bytes + env.MIN_FREE_BYTES // 8:
        raise disk.DiskFull()
    alive = _Pulse(claim)
    with boxes.alone(box) as free:
        if not free:
            raise CannotSave(_("Its packages are being saved already. Try again when that is done."))
        with _at_rest(use.job):
            figures = archive.pack(box / boxes.UPPER, target, alive=alive)
    noted = Image(pk=image.pk, name=image.name, kind=Image.Kind.SAVED, sha256=figures.sha256)
    noted.unpacked_bytes, noted.files = figures.bytes, figures.files
    layers.here(noted, alive)  # reads back what was written, and the next start on this machine finds it there
    return figures


class _Pulse:
    """Keeps the claim of a long piece of work."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.last = claim, time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self.last > RENEW_S:
            self.claim.renew()
            self.last = time.monotonic()


@contextmanager
def _at_rest(job: Job) -> Iterator[None]:
    """Let the job's processes stand still, if it runs; whatever becomes of us, they go on.

    Raises:
        CannotSave: they do not come to rest.
    """
    job.refresh_from_db()
    if job.is_final:
        yield
        return
    run, word = RunDir.of(job.pk, job.attempt_number).path, secrets.token_hex(8)
    if not (run / "supervisor.json").exists():
        yield  # it waits, and its box is locked until we are done
        return
    hold.ask(run, word)
    try:
        deadline = time.monotonic() + REST_S
        while not hold.is_held(run, word):
            if (run / "exit.json").exists():
                break
            if time.monotonic() > deadline:
                raise CannotSave(wording.message("image.no_rest", seconds=round(REST_S)))
            time.sleep(STEP_S)
        yield
    finally:
        hold.release(run)


def _remove_parts(image: Image) -> None:
    """Remove what a saver that was killed had written."""
    for part in places.packed(image.pk).parent.glob(f".{image.pk}.tar.zst.*"):
        part.unlink(missing_ok=True)


def go_on() -> None:
    """Send again what nobody is at; machines that are away find it when they are back."""
    for image in CLAIMS.free(Image.objects.filter(state=State.SAVING)).select_related("job")[:50]:
        node = ImageUse.objects.filter(job=image.job_id).values_list("node", flat=True).first()
        if node:
            enqueue("images.save", queue=queues.work(node), image_id=image.pk)
        else:
            gone: dict[str, Any] = {"message": wording.message("image.box_gone", node="")}
            Image.objects.filter(pk=image.pk, state=State.SAVING, tries=F("tries")).update(state=State.FAILED, **gone)
