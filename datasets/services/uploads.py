"""Uploads: announced, filled in chunks, used once or expired."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Sum
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.disk import DiskFull
from aiplatform.lib.errors import DomainError, Invalid, NotFound
from aiplatform.lib.files import free_bytes, remove_tree
from datasets.models import DatasetVersion, Upload


class TooLarge(DomainError, code="too_large", status=413): ...


def create(*, owner: User, length: int, metadata: dict[str, str]) -> Upload:
    """Announce an upload of `length` bytes; nothing is allocated, the space is only reserved.

    Args:
        metadata: "filename" and, if the sender knows it, "sha256" of the whole file.

    Raises:
        TooLarge: over the limit for one upload or the owner's storage.
        DiskFull: the disk would fall below its watermark.
    """
    if length < 0:
        raise Invalid(_("The length of an upload must not be negative."))
    if length > env.MAX_UPLOAD_BYTES:
        raise TooLarge(
            _("The file has %(size)s bytes; the limit is %(limit)s.")
            % {"size": f"{length:,}", "limit": f"{env.MAX_UPLOAD_BYTES:,}"},
            limit=env.MAX_UPLOAD_BYTES,
        )
    sha256 = metadata.get("sha256", "").lower()
    if sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise Invalid(_("sha256 must be 64 hexadecimal digits."))
    require_room(owner=owner, size_bytes=length)
    filename = safe_name(Path(metadata.get("filename", "").replace("\\", "/")).name or "upload")[:200]
    upload = Upload.objects.create(
        id=secrets.token_hex(16),
        owner=owner,
        filename=filename,
        length=length,
        sha256=sha256,
        metadata={key: value[:500] for key, value in list(metadata.items())[:20]},
        expires_at=now() + timedelta(hours=env.UPLOAD_HOURS),
        state=Upload.State.DONE if length == 0 else Upload.State.OPEN,
    )
    upload.folder.mkdir(parents=True, mode=0o700)
    upload.file.touch(mode=0o600)
    return upload


def require_room(*, owner: User, size_bytes: int) -> None:
    """Refuse what would pass the owner's storage or the disk's watermark, open uploads counted in full.

    Raises:
        TooLarge, DiskFull.
    """
    reserved = sum(max(upload.length - upload.offset, 0) for upload in Upload.objects.filter(state=Upload.State.OPEN))
    free = free_bytes(Path(settings.DATA_ROOT)) - reserved - env.MIN_FREE_BYTES
    if size_bytes > free:
        raise DiskFull(
            _("Not enough disk space: %(free)s bytes are available.") % {"free": f"{max(free, 0):,}"},
            free=max(free, 0),
        )
    if not env.STORAGE_QUOTA_BYTES:
        return
    used = stored_bytes(owner)
    if used + size_bytes > env.STORAGE_QUOTA_BYTES:
        raise TooLarge(
            _("Your storage quota has %(room)s bytes left. Delete datasets you no longer need.")
            % {"room": f"{max(env.STORAGE_QUOTA_BYTES - used, 0):,}"},
            quota=env.STORAGE_QUOTA_BYTES,
            used=used,
        )


def stored_bytes(owner: User) -> int:
    """Return the bytes of a user's datasets and of all announced uploads."""
    versions = DatasetVersion.objects.filter(dataset__owner=owner, images_root="", parent=None)
    stored: dict[str, Any] = versions.aggregate(total=Sum("size_bytes"))
    announced: dict[str, Any] = Upload.objects.filter(owner=owner).aggregate(total=Sum("length"))
    return int(stored["total"] or 0) + int(announced["total"] or 0)


def find(owner: User, upload_id: str) -> Upload:
    """The person's own upload.

    Raises:
        NotFound: another's, expired or never there: the same answer.
    """
    upload: Upload | None = Upload.objects.visible_to(owner).filter(pk=upload_id).first()
    if upload is None:
        raise NotFound(_("This upload does not exist or was deleted."))
    return upload


def arrived(upload: Upload) -> None:
    """Record progress: extend the expiry, and mark the upload complete once every byte is there."""
    complete = upload.offset >= upload.length
    state = Upload.State.DONE if complete else Upload.State.OPEN
    Upload.objects.filter(pk=upload.pk, state=Upload.State.OPEN).update(
        state=state, expires_at=now() + timedelta(hours=env.UPLOAD_HOURS)
    )


def terminate(upload: Upload) -> None:
    """Delete an upload that no import has taken, and its bytes."""
    if Upload.objects.filter(pk=upload.pk).exclude(state=Upload.State.USED).delete()[0]:
        remove_tree(upload.folder)


def require(owner: User, upload_id: str) -> Upload:
    """A complete upload that no import has taken yet.

    Raises:
        NotFound, Invalid: not there, not complete or already taken.
    """
    upload = find(owner, upload_id)
    if upload.state == Upload.State.OPEN:
        raise Invalid(_("The upload is not complete. Wait until it has finished."), field="upload")
    if upload.state != Upload.State.DONE:
        raise _taken()
    return upload


def claim(owner: User, upload_id: str) -> Upload:
    """Give a complete upload to one import; of two callers one gets it. Raises the errors of `require`."""
    upload = require(owner, upload_id)
    if not Upload.objects.filter(pk=upload.pk, state=Upload.State.DONE).update(state=Upload.State.USED):
        raise _taken()
    upload.refresh_from_db()
    return upload


def _taken() -> Invalid:
    return Invalid(_("This file was already imported."), field="upload")


def sweep_expired() -> int:
    """Delete expired uploads; returns how many."""
    count = 0
    stale = Upload.objects.filter(expires_at__lt=now()).exclude(state=Upload.State.USED)
    for upload in stale[:1000]:
        terminate(upload)
        count += 1
    return count
