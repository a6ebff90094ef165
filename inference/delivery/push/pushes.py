"""Pushes: queued, sent by the process that claims them, ended. The only writer of their rows.

A push is a row; a task sends it under a claim. Where the process dies, the claim runs out or is seen to be of a dead
process, the sweep hands the row to the next, and after some tries it ends as failed: no row runs for ever.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from concurrent import futures
from datetime import timedelta
from threading import Event

from django.conf import settings
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import sealed, wording, zips
from aiplatform.lib.claims import Claim, ClaimLost, Claims, is_gone
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid
from inference.delivery.push.models import Push, PushTarget
from inference.delivery.push.protocol import Destination, Parcel, PushFailed, PushProtocol, failed
from inference.delivery.push.protocols import PROTOCOLS
from inference.registry import history, packages
from inference.registry.models import ModelVersion
from workers.images.containers.patience import Pace

log = logging.getLogger(__name__)
CLAIMS = Claims(ttl=timedelta(seconds=60), epoch="tries", ends_with_process=True)
RENEW_S = 2.0
BACK_OFF_S = (20, 60, 300, 1800)
"""Pauses after the first, second, … failure that may pass; after the last one it is given up."""
MAX_ATTEMPTS = len(BACK_OFF_S) + 1
AT_ONCE = 3  # on the whole platform: workers have other things to do as well
MAX_UNFINISHED = 20  # of one user
RETENTION = timedelta(days=180)
S = Push.State
LIVE = (S.WAITING, S.RUNNING)


class CannotPush(DomainError, code="cannot_push"):
    """This version cannot be pushed to this target now."""


class _Ended(Exception):
    """The push was stopped, or another process took it over."""


def submit(*, user: User, version: ModelVersion, target: PushTarget, content: str = Push.Content.PACKAGE) -> Push:
    """Queue a push of a version; an unfinished push of the same version to the target is returned instead.

    Args:
        content: the package that runs by itself, or the version's own files; both as one zip.

    Raises:
        Invalid: no such content, or the version is no package that runs.
        CannotPush: the person has too many that wait.
    """
    if content not in Push.Content.values:
        message = _("%(name)s must be one of %(known)s.")
        raise Invalid(message % {"name": "content", "known": ", ".join(Push.Content.values)}, field="content")
    _entries(version, content, user)
    unfinished = Push.objects.filter(owner=user, ended_at=None)
    same = unfinished.filter(version=version, target=target, content=content).first()
    if same is not None:
        return same
    if unfinished.count() >= MAX_UNFINISHED:
        message = _("%(count)s of your exports are not done yet. Wait for them, or stop some.")
        raise CannotPush(message % {"count": MAX_UNFINISHED})
    push: Push = Push.objects.create(
        target=target, target_name=target.name, version=version, model_name=str(version)[:130], owner=user,
        content=content, size_bytes=zips.size(_entries(version, content, user)),
    )  # fmt: skip
    history.add(version.model, user, "model_pushed", version, to=target.name)
    enqueue("inference.push", push_id=push.pk)
    return push


def stop(push: Push) -> None:
    """End a push that is not over; what sends it notices within seconds."""
    _end(Push.objects.filter(pk=push.pk, ended_at=None), S.STOPPED)


def again(push: Push, *, by: User) -> Push:
    """Push once more what failed or was stopped.

    Raises:
        CannotPush: its version or its target is gone, or it is not over.
        Invalid: see `submit`.
    """
    if push.version is None or push.target is None:
        raise CannotPush(_("The version or the target was deleted."))
    return submit(user=by, version=push.version, target=push.target, content=push.content)


def end_those_to(target: PushTarget) -> None:
    """End as failed what is on its way to a target that goes."""
    _end(Push.objects.filter(target=target, ended_at=None), S.FAILED, wording.message("push.target_gone"))


def _end(rows: object, state: str, message: wording.Message | None = None) -> None:
    rows.update(state=state, message=message or wording.Message(), ended_at=now(), holder="")  # type: ignore[attr-defined]  # a queryset of pushes


def run(push_id: int) -> None:
    """Send one push if it is due and no other process sends it. Safe to call twice."""
    due = Push.objects.filter(pk=push_id, state__in=LIVE, not_before__lte=now())
    if _others_at_it(push_id) >= AT_ONCE:
        return  # the sweep comes by again
    claim = CLAIMS.acquire(due, state=S.RUNNING, sent_bytes=0)
    if claim is None:
        return
    rows = Push.objects.filter(pk=push_id).select_related("target__owner", "version__model__owner", "owner")
    push: Push = rows.get()
    try:
        if push.tries > MAX_ATTEMPTS:
            raise failed("died", count=MAX_ATTEMPTS)
        landed = _send(push, claim)
    except (ClaimLost, _Ended):
        return
    except PushFailed as exc:
        _failed(push, claim, exc)
        return
    except Exception as exc:
        log.exception("push=%s failed by a bug of ours", push.pk)
        message = wording.message("push.broke", error=type(exc).__name__)
        claim.release(state=S.FAILED, message=message, ended_at=now())
        return
    claim.release(
        state=S.DONE, landed=landed[:700], message=wording.Message(), ended_at=now(), sent_bytes=push.size_bytes
    )


def _others_at_it(push_id: int) -> int:
    fresh = now() - CLAIMS.ttl
    return Push.objects.filter(state=S.RUNNING, renewed_at__gte=fresh).exclude(Q(pk=push_id) | Q(holder="")).count()


def _failed(push: Push, claim: Claim, exc: PushFailed) -> None:
    message = wording.of_error(exc)
    if exc.again and push.tries < MAX_ATTEMPTS:
        later = now() + timedelta(seconds=BACK_OFF_S[push.tries - 1])
        claim.release(state=S.WAITING, message=message, not_before=later)
        log.info("push=%s tries again at %s: %s", push.pk, later.isoformat(), message.code)
        return
    if exc.again:
        message = wording.message("push.gave_up", count=push.tries, why=message)
    claim.release(state=S.FAILED, message=message, ended_at=now())
    log.warning("push=%s given up: %s", push.pk, message.code)


def _send(push: Push, claim: Claim) -> str:
    """Send in a separate thread that touches no row; heartbeats and byte counts are written here."""
    protocol, destination, entries, version = _prepare(push)
    counted, ended, pace = [0], Event(), Pace()

    def on_sent(count: int) -> None:
        counted[0] += count
        if ended.is_set():
            raise _Ended
        if not pace.keeps_up(count):
            raise failed("silent", host=push.target_name, error="too slow")

    def sending() -> str:
        parcel = _parcel(version, push, entries)
        push.sha256, push.size_bytes = parcel.sha256, parcel.size
        return protocol.send(destination, parcel, on_sent)

    with futures.ThreadPoolExecutor(1, thread_name_prefix="push") as pool:
        future = pool.submit(sending)
        try:
            while not futures.wait([future], RENEW_S).done:
                claim.write(sent_bytes=min(counted[0], push.size_bytes), sha256=push.sha256)
        except ClaimLost:
            ended.set()
            raise
        landed = future.result()
    claim.write(sha256=push.sha256, size_bytes=push.size_bytes)
    return landed


def _prepare(push: Push) -> tuple[PushProtocol, Destination, list[zips.Entry], ModelVersion]:
    """Return what a push needs and check it again: permissions may have been removed since the request."""
    if push.version is None:
        raise failed("version_gone")
    if push.target is None or not PushTarget.objects.usable_by(push.owner).filter(pk=push.target_id).exists():
        raise failed("target_gone")
    if not ModelVersion.objects.usable_by(push.owner).filter(pk=push.version_id).exists():
        raise failed("version_not_shared")
    try:
        entries = _entries(push.version, push.content, push.owner)
    except Invalid as exc:
        raise failed("version_gone") from exc
    return PROTOCOLS[push.target.kind], to_destination(push.target), entries, push.version


def _entries(version: ModelVersion, content: str, owner: User) -> list[zips.Entry]:
    if content == Push.Content.PACKAGE:
        return packages.entries(version, by=owner)
    return [(file["name"], version.path, file["name"]) for file in version.files]


def _parcel(version: ModelVersion, push: Push, entries: list[zips.Entry]) -> Parcel:
    """Return the bytes to push, counted and hashed by reading them once.

    Raises:
        PushFailed: files of the version are gone.
    """
    digest, size = hashlib.sha256(), 0
    try:
        for piece in zips.blocks(entries):
            digest.update(piece)
            size += len(piece)
    except OSError as exc:
        raise failed("version_gone") from exc
    if size != push.size_bytes:  # what is not there is left out of a zip
        raise failed("version_gone")

    def opened() -> Iterator[bytes]:
        return zips.blocks(entries)

    ending = "_package.zip" if push.content == Push.Content.PACKAGE else ".zip"
    stem = f"{version.model.name}_v{version.number}".replace(" ", "_")
    return Parcel(f"{stem}{ending}", size, digest.hexdigest(), version.model.name, version.number, opened)


def to_destination(target: PushTarget) -> Destination:
    """Return the destination of a target with its decrypted secret.

    Raises:
        PushFailed: it was sealed under another secret key of the platform.
    """
    try:
        secret = sealed.unseal(target.secret).get("secret", "")
    except sealed.Unsealable as exc:
        raise failed("sealed") from exc
    return Destination(target.address, target.options, secret, target.ca, target.host_key, tuple(settings.PUSH_ALLOWED))


def sweep() -> None:
    """Hand over again what waits, and what a dead or silent process left; forget what is long over."""
    due = Push.objects.filter(ended_at=None, not_before__lte=now()).order_by("not_before", "pk")
    for push in due[: AT_ONCE * 10]:
        if CLAIMS.is_free(push) or is_gone(push.holder):
            enqueue("inference.push", push_id=push.pk)
    Push.objects.filter(ended_at__lt=now() - RETENTION).delete()
