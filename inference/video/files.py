"""Videos that people upload: kept, listed, deleted."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files, titles
from aiplatform.lib.errors import DomainError, Invalid, StillInUse
from inference.registry.file_copies import TooLarge, copy_rest
from inference.video.models import VideoAnalysis, VideoFile

MAX_BYTES = 16 << 30
SUFFIXES = (
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg", ".wmv", ".asf"),
    *(".flv", ".ogv", ".3gp", ".mxf", ".mjpeg", ".h264", ".hevc"),
)


class VideoRefused(DomainError, code="video_refused", field="file"):
    """This file is not taken."""


def store(*, user: User, source: Path, filename: str) -> VideoFile:
    """Store a copy of an uploaded video. Its content is inspected by the job, in its sandbox.

    Raises:
        VideoRefused: it is empty, too large, or by its name no video.
        DiskFull: there is no room for it.
    """
    suffix = Path(filename).suffix.lower()
    if suffix not in SUFFIXES:
        suffixes = ", ".join(SUFFIXES)
        raise VideoRefused(
            _("%(name)s does not have a video file name. Supported formats: %(known)s.")
            % {"name": filename[:100], "known": suffixes}
        )
    if not source.stat().st_size:
        raise VideoRefused(_("The file is empty."))
    row = VideoFile(owner=user, uid=secrets.token_hex(16), name=_title(filename))
    row.path.parent.mkdir(parents=True, exist_ok=True)
    partial = row.path.with_suffix(".partial")
    try:
        with source.open("rb") as opened:
            row.size_bytes = copy_rest(opened, partial, max_bytes=MAX_BYTES)
        row.sha256 = files.sha256_of(partial)
        partial.rename(row.path)
        row.save()
    except TooLarge:
        raise VideoRefused(_("A video can have at most %(most)s GiB.") % {"most": MAX_BYTES >> 30}) from None
    except BaseException:
        partial.unlink(missing_ok=True)
        row.path.unlink(missing_ok=True)
        raise
    return row


def _title(filename: str) -> str:
    """A name for people, of whatever the file was called."""
    return titles.derive_name(Path(filename).name, room=100)


@transaction.atomic
def delete(*, video: VideoFile) -> None:
    """Delete a video; what was found in it stays.

    Raises:
        StillInUse: a job reads it.
    """
    running = VideoAnalysis.objects.unfinished().filter(video=video).select_related("job").first()
    if running is not None:
        raise StillInUse(_("%(name)s is still reading this video. Stop it first.") % {"name": running})
    path = video.path
    video.delete()
    transaction.on_commit(lambda: path.unlink(missing_ok=True))


def check_exists(video: VideoFile) -> None:
    """Refuse a video whose file does not exist.

    Raises:
        Invalid.
    """
    if not video.path.is_file():
        raise Invalid(_("The file of %(name)s no longer exists. Upload it again.") % {"name": video}, field="video")
